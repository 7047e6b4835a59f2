//! Every token once: how the file spells it, what it adds to decoded text, and what it is.
//! The decoder of the file is run on single tokens here, so that text can be streamed: only decoders
//! whose whole output follows from such pieces are taken.

use ahash::AHashMap;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::{AddedToken, Decoder};

use crate::Fallible;

pub const ADDED: u32 = 1;
pub const SPECIAL: u32 = 2;
pub const CONTROL: u32 = 4;
pub const BYTE: u32 = 8;

/// Ids and their number are 32-bit and signed outside.
const MAX_ID: u32 = i32::MAX as u32 - 1;

pub struct Token {
    pub text: Box<str>,
    pub piece: Box<[u8]>,
    pub flags: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Bytes,
    Runs { leading_spaces: u32 },
    Spaced,
}

pub struct Vocabulary {
    tokens: AHashMap<u32, Token>,
    added_ids: Vec<u32>,
    join: Join,
    id_end: u32,
}

/// User text must not become such a token. Special ones are; so are the marks of dialogue and tools
/// that families leave unmarked (`<think>`, `<tool_call>`). Added words and runs of white space are
/// ordinary text.
pub fn is_control(token: &AddedToken) -> bool {
    token.special || !token.content.chars().all(|c| c.is_alphanumeric() || c.is_whitespace())
}

impl Vocabulary {
    pub fn new(crate_tokenizer: &tokenizers::Tokenizer) -> Fallible<Vocabulary> {
        let added = crate_tokenizer.get_added_vocabulary();
        let decoder = PieceDecoder::new(crate_tokenizer.get_decoder())?;
        let mut tokens = AHashMap::new();
        let mut id_end = 0;
        for (text, id) in crate_tokenizer.get_vocab(true) {
            if id > MAX_ID {
                return Err(format!("token {text:?} has id {id}; at most {MAX_ID} are taken"));
            }
            id_end = id_end.max(id + 1);
            let mut flags = 0;
            // What decoding starts from: an added token may be kept in normalized form.
            let spelled = added.simple_id_to_token(id).unwrap_or_else(|| text.clone());
            if let Some(token) = added.get_added_tokens_decoder().get(&id) {
                flags |= ADDED;
                flags |= if added.is_special_token(&spelled) { SPECIAL } else { 0 };
                flags |= if is_control(token) { CONTROL } else { 0 };
            }
            let (piece, is_byte) = decoder.piece(spelled)?;
            flags |= if is_byte { BYTE } else { 0 };
            let token = Token { text: text.into(), piece: piece.into(), flags };
            if let Some(other) = tokens.insert(id, token) {
                return Err(format!("id {id} belongs to two tokens, one of them {:?}", other.text));
            }
        }
        let mut added_ids: Vec<u32> = added.get_added_tokens_decoder().keys().copied().collect();
        added_ids.sort_unstable();
        Ok(Vocabulary { tokens, added_ids, join: decoder.join, id_end })
    }

    pub fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(&id)
    }

    /// In ascending order.
    pub fn added_ids(&self) -> &[u32] {
        &self.added_ids
    }

    pub fn join(&self) -> Join {
        self.join
    }

    pub fn id_end(&self) -> u32 {
        self.id_end
    }
}

/// The file's decoder, applied to one token at a time.
struct PieceDecoder<'t> {
    join: Join,
    replacements: Vec<&'t DecoderWrapper>,
    has_byte_tokens: bool,
}

impl<'t> PieceDecoder<'t> {
    fn new(decoder: Option<&'t DecoderWrapper>) -> Fallible<PieceDecoder<'t>> {
        use DecoderWrapper as D;
        let steps = match decoder {
            None => {
                return Ok(PieceDecoder {
                    join: Join::Spaced,
                    replacements: vec![],
                    has_byte_tokens: false,
                })
            }
            Some(D::Sequence(sequence)) => sequence.get_decoders(),
            Some(one) => std::slice::from_ref(one),
        };
        if let [D::ByteLevel(_)] = steps {
            return Ok(PieceDecoder {
                join: Join::Bytes,
                replacements: vec![],
                has_byte_tokens: false,
            });
        }
        let n = steps.iter().take_while(|s| matches!(s, D::Replace(_))).count();
        let (replacements, rest) = steps.split_at(n);
        let (has_byte_tokens, rest) = match rest {
            [D::ByteFallback(_), rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let leading_spaces = match rest {
            [D::Fuse(_)] => 0,
            [D::Fuse(_), D::Strip(s)] if s.content == ' ' && s.stop == 0 => {
                u32::try_from(s.start).unwrap_or(u32::MAX)
            }
            _ => return Err(unsupported(steps)),
        };
        Ok(PieceDecoder {
            join: Join::Runs { leading_spaces },
            replacements: replacements.iter().collect(),
            has_byte_tokens,
        })
    }

    /// What the token adds to the text, and whether that is one byte of a run.
    fn piece(&self, token: String) -> Fallible<(Vec<u8>, bool)> {
        if self.join == Join::Bytes {
            return Ok((crate::byte_level::bytes_of(&token), false));
        }
        let mut parts = vec![token];
        for replace in &self.replacements {
            parts = replace.decode_chain(parts).map_err(|e| e.to_string())?;
        }
        let text = parts.concat();
        if self.has_byte_tokens && text.len() == 6 && text.is_ascii() {
            let hex = text.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
            if let Some(byte) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
                return Ok((vec![byte], true));
            }
        }
        Ok((text.into_bytes(), false))
    }
}

fn unsupported(steps: &[DecoderWrapper]) -> String {
    let names: Vec<String> = steps
        .iter()
        .map(|s| {
            let debug = format!("{s:?}");
            debug.split(['(', ' ']).next().unwrap_or_default().to_string()
        })
        .collect();
    format!(
        "decoder [{}] can not be streamed; taken are ByteLevel, or Replace, ByteFallback, Fuse and \
         Strip of leading spaces in this order, or none",
        names.join(", ")
    )
}
