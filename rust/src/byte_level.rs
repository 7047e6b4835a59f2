//! The fast road for byte-level BPE: pattern, word cache, BPE. The crate's own road keeps, for every
//! byte, where it came from; that costs it several times the work of finding the words. Taken only
//! where the file asks for exactly this pipeline; the merging itself stays the crate's.

use std::sync::{LazyLock, Mutex};

use ahash::AHashMap;
use aho_corasick::{AhoCorasick, MatchKind};
use tokenizers::pre_tokenizers::PreTokenizerWrapper as P;
use tokenizers::{ModelWrapper, SplitDelimiterBehavior};

use crate::splitter::{Splitter, GPT2};
use crate::tokenizer::tokenize_word;
use crate::vocabulary::is_control;
use crate::Fallible;

const MAX_STAGES: usize = 8;
/// A word's ids are kept for the next time. One cache holds at most so many words of at most so many
/// bytes (8 MB in all), and starts anew when full.
const MAX_CACHED_WORDS: usize = 1 << 16;
const MAX_CACHED_BYTES: usize = 64;

/// GPT-2's printable stand-in for each byte: printable Latin-1 stands for itself, the other 68 bytes
/// take the code points from 256 on, in order.
static CHAR_OF_BYTE: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut chars = ['\0'; 256];
    let mut next = 256;
    for byte in 0..=255u8 {
        let stands_for_itself = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        chars[byte as usize] = if stands_for_itself {
            char::from(byte)
        } else {
            next += 1;
            char::from_u32(next - 1).unwrap_or_default()
        };
    }
    chars
});
static BYTE_OF_CHAR: LazyLock<AHashMap<char, u8>> =
    LazyLock::new(|| CHAR_OF_BYTE.iter().zip(0..=255u8).map(|(&c, b)| (c, b)).collect());

/// The bytes that a token stands for; a token with any other character stands for itself.
pub fn bytes_of(token: &str) -> Vec<u8> {
    let mapped: Option<Vec<u8>> = token.chars().map(|c| BYTE_OF_CHAR.get(&c).copied()).collect();
    mapped.unwrap_or_else(|| token.as_bytes().to_vec())
}

pub struct ByteLevelBpe {
    stages: Vec<Splitter>,
    added: Vec<AddedTokens>,
    /// Caches not in use; a call takes one and gives it back.
    caches: Mutex<Vec<WordCache>>,
}

/// Added tokens of one round: those that match before normalization, then the others.
struct AddedTokens {
    automaton: AhoCorasick,
    ids: Vec<(u32, bool)>, // id, is control
}

#[derive(Default)]
struct WordCache {
    spans: AHashMap<Box<str>, (u32, u32)>,
    ids: Vec<u32>,
    mapped: String,
}

impl ByteLevelBpe {
    /// None where the file asks for anything that this road does not do.
    pub fn new(tokenizer: &tokenizers::Tokenizer, normalizes: bool) -> Fallible<Option<Self>> {
        let ModelWrapper::BPE(_) = tokenizer.get_model() else {
            return Ok(None);
        };
        let Some(stages) = tokenizer.get_pre_tokenizer().and_then(stages) else {
            return Ok(None);
        };
        let tokens = tokenizer.get_added_tokens_decoder();
        if normalizes || tokens.values().any(|t| t.single_word || t.lstrip || t.rstrip) {
            return Ok(None);
        }
        let stages: Vec<Splitter> =
            stages.into_iter().map(Splitter::new).collect::<Fallible<_>>()?;
        let mut added = vec![];
        for normalized in [false, true] {
            let round: Vec<_> = tokens.iter().filter(|(_, t)| t.normalized == normalized).collect();
            if round.is_empty() {
                continue;
            }
            added.push(AddedTokens {
                automaton: AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(round.iter().map(|(_, t)| &t.content))
                    .map_err(|e| e.to_string())?,
                ids: round.iter().map(|(id, t)| (**id, is_control(t))).collect(),
            });
        }
        Ok(Some(ByteLevelBpe { stages, added, caches: Mutex::default() }))
    }

    pub fn encode(
        &self,
        model: &ModelWrapper,
        text: &str,
        match_control: bool,
    ) -> Fallible<Vec<u32>> {
        let pooled = self.caches.lock().ok().and_then(|mut pool| pool.pop());
        let mut cache = pooled.unwrap_or_default();
        let mut ids = Vec::with_capacity(text.len() / 3);
        let result = self.encode_round(0, model, text, match_control, &mut cache, &mut ids);
        if let Ok(mut pool) = self.caches.lock() {
            pool.push(cache);
        }
        result.map(|()| ids)
    }

    /// Cuts out the added tokens of this round and hands the text between them to the next.
    fn encode_round(
        &self,
        round: usize,
        model: &ModelWrapper,
        text: &str,
        match_control: bool,
        cache: &mut WordCache,
        ids: &mut Vec<u32>,
    ) -> Fallible<()> {
        if text.is_empty() {
            return Ok(());
        }
        let Some(added) = self.added.get(round) else {
            return self.split(0, text, &mut |word| cache.encode(model, word, ids));
        };
        let mut done = 0;
        for found in added.automaton.find_iter(text) {
            let (id, is_control) = added.ids[found.pattern().as_usize()];
            if is_control && !match_control {
                continue;
            }
            let before = &text[done..found.start()];
            self.encode_round(round + 1, model, before, match_control, cache, ids)?;
            ids.push(id);
            done = found.end();
        }
        self.encode_round(round + 1, model, &text[done..], match_control, cache, ids)
    }

    fn split(
        &self,
        stage: usize,
        text: &str,
        word: &mut dyn FnMut(&str) -> Fallible<()>,
    ) -> Fallible<()> {
        match self.stages.get(stage) {
            None => word(text),
            Some(splitter) => splitter.split(text, |piece| self.split(stage + 1, piece, word)),
        }
    }
}

/// The patterns of "Split, Split, ..., ByteLevel" or of ByteLevel alone; none for anything else.
fn stages(pre_tokenizer: &P) -> Option<Vec<&str>> {
    let steps = match pre_tokenizer {
        P::Sequence(sequence) => sequence.as_ref(),
        one => std::slice::from_ref(one),
    };
    let (P::ByteLevel(last), splits) = steps.split_last()? else {
        return None;
    };
    if last.add_prefix_space || splits.len() >= MAX_STAGES {
        return None;
    }
    let mut patterns = vec![];
    for step in splits {
        let P::Split(split) = step else {
            return None;
        };
        let tokenizers::pre_tokenizers::split::SplitPattern::Regex(pattern) = &split.pattern else {
            return None;
        };
        if split.invert || split.behavior != SplitDelimiterBehavior::Isolated {
            return None;
        }
        patterns.push(pattern.as_str());
    }
    if last.use_regex {
        patterns.push(GPT2);
    }
    Some(patterns)
}

impl WordCache {
    fn encode(&mut self, model: &ModelWrapper, word: &str, ids: &mut Vec<u32>) -> Fallible<()> {
        if let Some(&(start, n)) = self.spans.get(word) {
            ids.extend_from_slice(&self.ids[start as usize..(start + n) as usize]);
            return Ok(());
        }
        self.mapped.clear();
        self.mapped.extend(word.bytes().map(|b| CHAR_OF_BYTE[b as usize]));
        let tokens = tokenize_word(model, &self.mapped)?;
        let first = ids.len();
        ids.extend(tokens.iter().map(|t| t.id));
        if word.len() <= MAX_CACHED_BYTES {
            if self.spans.len() == MAX_CACHED_WORDS {
                self.spans.clear();
                self.ids.clear();
            }
            self.spans.insert(word.into(), (self.ids.len() as u32, tokens.len() as u32));
            self.ids.extend_from_slice(&ids[first..]);
        }
        Ok(())
    }
}
