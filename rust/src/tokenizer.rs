//! One tokenizer.json, loaded. Two roads from text to ids: the crate's, and for byte-level BPE a
//! faster one (byte_level.rs) that gives the same ids.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::pre_tokenizers::PreTokenizerWrapper as P;
use tokenizers::tokenizer::pattern::Invert;
use tokenizers::{
    AddedVocabulary, Encoding, Model, ModelWrapper, OffsetType, PostProcessor, PreTokenizedString,
    PreTokenizer, SplitDelimiterBehavior, Token,
};

use crate::byte_level::ByteLevelBpe;
use crate::file_check::TokenizerFile;
use crate::splitter::{compile, pattern_gave_up, GPT2};
use crate::vocabulary::{is_control, Vocabulary};
use crate::Fallible;

/// A million tokens of English are 4.5 MB. The BPE of one unbroken word needs some 150 bytes for each.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The same after normalization, for files whose normalizer lets text grow.
const MAX_GROWN_BYTES: u64 = 1 << 30;

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// As the file has them, but control tokens do not match.
    added_for_text: AddedVocabulary,
    steps: Vec<Step>,
    fast: Option<ByteLevelBpe>,
    vocabulary: Vocabulary,
    frame: (Vec<u32>, Vec<u32>),
    growth: u64,
}

#[derive(Clone, Copy, Default)]
pub struct EncodeOptions {
    pub match_control: bool,
    pub add_frame: bool,
    pub plain_road: bool,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Fallible<Tokenizer> {
        let file = TokenizerFile::parse(json)?;
        let growth = file.growth()?;
        let added_bytes = file.added_tokens.iter().map(|t| t.content.len() as u64).sum::<u64>();
        check_growth(added_bytes, growth)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| e.to_string())?;
        inner.with_truncation(None).map_err(|e| e.to_string())?;
        inner.with_padding(None);
        check_added_ids(&file, &inner)?;
        let mut steps = vec![];
        if let Some(pre_tokenizer) = inner.get_pre_tokenizer() {
            add_steps(pre_tokenizer, &mut steps)?;
        }
        Ok(Tokenizer {
            added_for_text: without_control(&inner)?,
            steps,
            fast: ByteLevelBpe::new(&inner, file.normalizes())?,
            vocabulary: Vocabulary::new(&inner)?,
            frame: frame(&inner)?,
            growth,
            inner,
        })
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub fn find(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn encode(&self, text: &[u8], options: EncodeOptions) -> Fallible<Vec<u32>> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "text of {} bytes; at most {MAX_TEXT_BYTES} are taken at once",
                text.len()
            ));
        }
        check_growth(text.len() as u64, self.growth)?;
        let text = std::str::from_utf8(text)
            .map_err(|e| format!("text is not UTF-8 at byte {}", e.valid_up_to()))?;
        let ids = match &self.fast {
            Some(fast) if !options.plain_road => {
                fast.encode(self.inner.get_model(), text, options.match_control)?
            }
            _ => self.encode_plainly(text, options.match_control)?,
        };
        if !options.add_frame {
            return Ok(ids);
        }
        let (before, after) = &self.frame;
        Ok([before.as_slice(), &ids, after].concat())
    }

    fn encode_plainly(&self, text: &str, match_control: bool) -> Fallible<Vec<u32>> {
        let added = match match_control {
            true => self.inner.get_added_vocabulary(),
            false => &self.added_for_text,
        };
        let mut pieces = added.extract_and_normalize(self.inner.get_normalizer(), text);
        for step in &self.steps {
            step.run(&mut pieces)?;
        }
        let model = self.inner.get_model();
        pieces
            .tokenize(|piece| Ok(tokenize_word(model, piece.get())?))
            .map_err(|e| e.to_string())?;
        let encoding =
            pieces.into_encoding(None, 0, OffsetType::None).map_err(|e| e.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The model's tokens for one word. Without an unknown token the crate's BPE leaves out characters
/// that the vocabulary lacks; here that is an error, seen from the lengths.
pub fn tokenize_word(model: &ModelWrapper, word: &str) -> Fallible<Vec<Token>> {
    let tokens = model.tokenize(word).map_err(|e| e.to_string())?;
    let covered = tokens.last().map_or(0, |t| t.offsets.1);
    if matches!(model, ModelWrapper::BPE(_)) && covered != word.len() {
        let start: String = word.chars().take(40).collect();
        return Err(format!("the vocabulary has no token for a part of {start:?}"));
    }
    Ok(tokens)
}

fn check_growth(bytes: u64, growth: u64) -> Fallible<()> {
    if bytes.saturating_mul(growth) > MAX_GROWN_BYTES {
        return Err(format!(
            "{bytes} bytes of text, which this tokenizer's normalizer may make {growth} times longer; \
             at most {MAX_GROWN_BYTES} bytes are taken"
        ));
    }
    Ok(())
}

/// The crate numbers added tokens itself and only logs where the file says otherwise.
fn check_added_ids(file: &TokenizerFile, inner: &tokenizers::Tokenizer) -> Fallible<()> {
    for token in &file.added_tokens {
        let found = inner.token_to_id(&token.content);
        if found != Some(token.id) {
            return Err(format!(
                "added token {:?} has id {} in the file, but its place in the vocabulary gives {}",
                token.content,
                token.id,
                found.map_or("none".to_string(), |id| id.to_string())
            ));
        }
    }
    Ok(())
}

/// The added tokens, with every control token marked special and special ones not matched.
fn without_control(inner: &tokenizers::Tokenizer) -> Fallible<AddedVocabulary> {
    let mut added = inner.get_added_vocabulary().clone();
    let control: Vec<_> = inner
        .get_added_tokens_decoder()
        .into_values()
        .filter(is_control)
        .map(|token| token.special(true))
        .collect();
    added
        .add_tokens(control, inner.get_model(), inner.get_normalizer())
        .map_err(|e| e.to_string())?;
    added.set_encode_special_tokens(true);
    Ok(added)
}

/// What the post-processor puts before and after one sequence, learnt from a sequence of one mark.
fn frame(inner: &tokenizers::Tokenizer) -> Fallible<(Vec<u32>, Vec<u32>)> {
    const MARK: u32 = u32::MAX;
    let Some(processor) = inner.get_post_processor() else {
        return Ok((vec![], vec![]));
    };
    let marked = Encoding::from_tokens(vec![Token::new(MARK, String::new(), (0, 0))], 0);
    let framed = processor.process(marked, None, true).map_err(|e| e.to_string())?;
    let parts: Vec<&[u32]> = framed.get_ids().split(|&id| id == MARK).collect();
    let [before, after] = parts[..] else {
        return Err("the post-processor does not put a sequence in exactly once".into());
    };
    for &id in before.iter().chain(after) {
        if inner.id_to_token(id).is_none() {
            return Err(format!("the post-processor adds id {id}, which is no token"));
        }
    }
    Ok((before.to_vec(), after.to_vec()))
}

/// One pre-tokenizer. Patterns are run here and not by the crate, which would take a pattern's giving
/// up for the end of its matches.
enum Step {
    Split { regex: Box<fancy_regex::Regex>, behavior: SplitDelimiterBehavior, invert: bool },
    PrefixSpace,
    Crate(P),
}

fn add_steps(pre_tokenizer: &P, steps: &mut Vec<Step>) -> Fallible<()> {
    match pre_tokenizer {
        P::Sequence(sequence) => {
            for one in sequence.as_ref() {
                add_steps(one, steps)?;
            }
        }
        P::Split(split) => {
            let regex = match &split.pattern {
                SplitPattern::Regex(pattern) => compile(pattern)?,
                SplitPattern::String(text) => compile(&regex_syntax::escape(text))?,
            };
            let (behavior, invert) = (split.behavior, split.invert);
            steps.push(Step::Split { regex: Box::new(regex), behavior, invert });
        }
        P::ByteLevel(byte_level) => {
            if byte_level.add_prefix_space {
                steps.push(Step::PrefixSpace);
            }
            if byte_level.use_regex {
                let regex = Box::new(compile(GPT2)?);
                let behavior = SplitDelimiterBehavior::Isolated;
                steps.push(Step::Split { regex, behavior, invert: false });
            }
            let bytes_only = ByteLevel::new(false, byte_level.trim_offsets, false);
            steps.push(Step::Crate(P::ByteLevel(bytes_only)));
        }
        other => steps.push(Step::Crate(other.clone())),
    }
    Ok(())
}

impl Step {
    fn run(&self, pieces: &mut PreTokenizedString) -> Fallible<()> {
        let result = match self {
            Step::Split { regex, behavior, invert: true } => {
                pieces.split(|_, piece| piece.split(Invert(&**regex), *behavior))
            }
            Step::Split { regex, behavior, invert: false } => {
                pieces.split(|_, piece| piece.split(&**regex, *behavior))
            }
            Step::PrefixSpace => pieces.split(|_, mut piece| {
                if !piece.get().starts_with(' ') {
                    piece.prepend(" ");
                }
                Ok(Some(piece))
            }),
            Step::Crate(step) => step.pre_tokenize(pieces),
        };
        result.map_err(|e| match e.downcast::<fancy_regex::Error>() {
            Ok(gave_up) => pattern_gave_up(*gave_up),
            Err(other) => other.to_string(),
        })
    }
}
