//! The C door that ../bascule_text.h describes. Pointers and panics end here: everything behind is
//! safe Rust that returns its failures as text.

mod byte_level;
mod file_check;
mod splitter;
mod tokenizer;
mod vocabulary;

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use tokenizer::{EncodeOptions, Tokenizer};
use vocabulary::Join;

/// A failure, told to a person.
pub type Fallible<T> = Result<T, String>;

const MATCH_CONTROL: u32 = 1;
const ADD_FRAME: u32 = 2;
const PLAIN_ROAD: u32 = 4;

const MAX_MESSAGE_CHARS: usize = 500;

#[repr(C)]
pub struct Decoding {
    join: i32,
    leading_spaces: u32,
    id_end: u32,
}

#[repr(C)]
pub struct Token {
    text: *const c_char,
    text_size: usize,
    piece: *const c_char,
    piece_size: usize,
    flags: u32,
}

thread_local! {
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; a panic inside becomes an error. The first call replaces Rust's panic hook, which
/// would write to stderr, by one that only remembers the place.
fn guarded<T>(work: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|l| l.to_string()).unwrap_or_default();
            PANIC_PLACE.with(|p| *p.borrow_mut() = place);
        }));
    });
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(describe_panic(&*panic)))
}

fn describe_panic(panic: &(dyn Any + Send)) -> String {
    let what = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_string());
    let place = PANIC_PLACE.with(|p| p.borrow().clone());
    format!("the tokenizers library gave up: {what} ({place})")
}

/// # Safety
/// `data` points at `size` bytes, or `size` is 0.
unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if data.is_null() || size == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data.cast(), size)
}

/// # Safety
/// `error` is null or may be written.
unsafe fn report<T>(result: Fallible<T>, error: *mut *mut c_char) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(message) => {
            if !error.is_null() {
                *error = CString::new(printable(&message)).unwrap_or_default().into_raw();
            }
            None
        }
    }
}

/// What a file or a text put into a message may not move the reader's cursor, nor fill the log.
fn printable(message: &str) -> String {
    let mut text = String::new();
    for (n, c) in message.chars().enumerate() {
        if n == MAX_MESSAGE_CHARS {
            return text + "...";
        }
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

/// # Safety
/// As bascule_text.h says, for this function and all below.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_tokenizer_new(
    json: *const c_char,
    size: usize,
    error: *mut *mut c_char,
) -> *mut Tokenizer {
    let result = guarded(|| Tokenizer::from_json(bytes(json, size)));
    match report(result, error) {
        Some(tokenizer) => Box::into_raw(Box::new(tokenizer)),
        None => std::ptr::null_mut(),
    }
}

/// # Safety
/// `tokenizer` is null or from bascule_text_tokenizer_new, and not used again.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// `error` is null or a message from this library, and not used again.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_error_free(error: *mut c_char) {
    if !error.is_null() {
        drop(CString::from_raw(error));
    }
}

/// # Safety
/// The pointers are valid; `ids` and `n_ids` may be written.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_encode(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    size: usize,
    flags: u32,
    ids: *mut *mut u32,
    n_ids: *mut usize,
    error: *mut *mut c_char,
) -> bool {
    let options = EncodeOptions {
        match_control: flags & MATCH_CONTROL != 0,
        add_frame: flags & ADD_FRAME != 0,
        plain_road: flags & PLAIN_ROAD != 0,
    };
    let result = guarded(|| (*tokenizer).encode(bytes(text, size), options));
    match report(result, error) {
        Some(encoded) => {
            let encoded = encoded.into_boxed_slice();
            *n_ids = encoded.len();
            *ids = Box::into_raw(encoded).cast();
            true
        }
        None => false,
    }
}

/// # Safety
/// `ids` and `n_ids` are what bascule_text_encode gave, and not used again.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_ids_free(ids: *mut u32, n_ids: usize) {
    if !ids.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(ids, n_ids)));
    }
}

/// # Safety
/// `tokenizer` is valid.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_get_decoding(tokenizer: *const Tokenizer) -> Decoding {
    let vocabulary = (*tokenizer).vocabulary();
    let (join, leading_spaces) = match vocabulary.join() {
        Join::Bytes => (0, 0),
        Join::Runs { leading_spaces } => (1, leading_spaces),
        Join::Spaced => (2, 0),
    };
    Decoding { join, leading_spaces, id_end: vocabulary.id_end() }
}

/// # Safety
/// The pointers are valid; `token` may be written.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_get_token(
    tokenizer: *const Tokenizer,
    id: u32,
    token: *mut Token,
) -> bool {
    let Some(found) = (*tokenizer).vocabulary().token(id) else {
        return false;
    };
    *token = Token {
        text: found.text.as_ptr().cast(),
        text_size: found.text.len(),
        piece: found.piece.as_ptr().cast(),
        piece_size: found.piece.len(),
        flags: found.flags,
    };
    true
}

/// # Safety
/// The pointers are valid; `n_ids` may be written.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_get_added(
    tokenizer: *const Tokenizer,
    n_ids: *mut usize,
) -> *const u32 {
    let ids = (*tokenizer).vocabulary().added_ids();
    *n_ids = ids.len();
    ids.as_ptr()
}

/// # Safety
/// The pointers are valid; `id` may be written.
#[no_mangle]
pub unsafe extern "C" fn bascule_text_find_token(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    size: usize,
    id: *mut u32,
) -> bool {
    let Ok(text) = std::str::from_utf8(bytes(text, size)) else {
        return false;
    };
    match (*tokenizer).find(text) {
        Some(found) => {
            *id = found;
            true
        }
        None => false,
    }
}
