//! What is refused before the crate reads a tokenizer.json: parts that it does not check itself, and
//! parts that a hostile file could use to exhaust memory. Names everything that this program runs;
//! what is not named is refused by name.

use serde::Deserialize;
use serde_json::Value;

use crate::splitter::compile;
use crate::Fallible;

/// All patterns of a file together; published ones need less than 1 KB.
const MAX_PATTERNS_BYTES: usize = 8192;

#[derive(Deserialize)]
pub struct TokenizerFile {
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
    model: Model,
}

#[derive(Deserialize)]
pub struct AddedToken {
    pub id: u32,
    pub content: String,
}

#[derive(Deserialize)]
struct Model {
    r#type: String,
    dropout: Option<f64>,
    continuing_subword_prefix: Option<String>,
}

impl TokenizerFile {
    pub fn parse(json: &[u8]) -> Fallible<TokenizerFile> {
        let file: TokenizerFile = serde_json::from_slice(json)
            .map_err(|e| format!("this is no tokenizer.json that can be read: {e}"))?;
        file.model.check()?;
        let mut patterns_bytes = 0;
        for part in [&file.normalizer, &file.pre_tokenizer, &file.decoder] {
            check_patterns(part, &mut patterns_bytes)?;
        }
        Ok(file)
    }

    /// How many times its length a text may grow, at worst, on its way to the model.
    pub fn growth(&self) -> Fallible<u64> {
        let normalizer = growth("normalizer", &self.normalizer, &normalizer_growth)?;
        let pre_tokenizer = growth("pre_tokenizer", &self.pre_tokenizer, &pre_tokenizer_growth)?;
        Ok(normalizer.saturating_mul(pre_tokenizer))
    }

    pub fn normalizes(&self) -> bool {
        match self.normalizer.get("normalizers") {
            Some(Value::Array(steps)) => !steps.is_empty(),
            _ => !self.normalizer.is_null(),
        }
    }
}

impl Model {
    fn check(&self) -> Fallible<()> {
        if self.r#type != "BPE" && self.r#type != "WordLevel" {
            return Err(format!("model {:?} is not supported; BPE and WordLevel are", self.r#type));
        }
        if self.dropout.is_some_and(|p| p != 0.0) {
            return Err("the model has dropout, which makes ids random; set it to null".into());
        }
        if self.continuing_subword_prefix.as_ref().is_some_and(|p| !p.is_empty()) {
            return Err("a BPE model with continuing_subword_prefix is not supported".into());
        }
        Ok(())
    }
}

/// Each `{"Regex": pattern}` compiles within bounds. A replacement may not look around: the crate
/// would take an engine's giving up for the end of the matches.
fn check_patterns(part: &Value, total_bytes: &mut usize) -> Fallible<()> {
    match part {
        Value::Array(parts) => parts.iter().try_for_each(|p| check_patterns(p, total_bytes)),
        Value::Object(fields) => {
            if let Some(pattern) = part["pattern"]["Regex"].as_str() {
                *total_bytes += pattern.len();
                if *total_bytes > MAX_PATTERNS_BYTES {
                    return Err(format!("more than {MAX_PATTERNS_BYTES} bytes of patterns"));
                }
                compile(pattern)?;
                if part["type"] == "Replace" && regex_syntax::parse(pattern).is_err() {
                    return Err(format!(
                        "replacement of {pattern:?}: only plain patterns are taken"
                    ));
                }
            }
            fields.values().try_for_each(|p| check_patterns(p, total_bytes))
        }
        _ => Ok(()),
    }
}

type GrowthOf = dyn Fn(&str, &Value) -> Option<u64>;

fn growth(what: &str, part: &Value, growth_of: &GrowthOf) -> Fallible<u64> {
    if part.is_null() {
        return Ok(1);
    }
    let Some(name) = part["type"].as_str() else {
        return Err(format!("a {what} has no type"));
    };
    if name == "Sequence" {
        let steps = part.get("normalizers").or_else(|| part.get("pretokenizers"));
        let steps = steps.and_then(Value::as_array).into_iter().flatten();
        return steps
            .map(|step| growth(what, step, growth_of))
            .try_fold(1u64, |product, step| Ok(product.saturating_mul(step?)));
    }
    growth_of(name, part).ok_or_else(|| format!("{what} {name:?} is not supported"))
}

fn normalizer_growth(name: &str, part: &Value) -> Option<u64> {
    let length = |value: &Value| value.as_str().map_or(0, str::len) as u64;
    Some(match name {
        "NFC" | "NFD" => 3,
        "NFKC" | "NFKD" => 12, // U+FDFA: 3 bytes become 33
        "Lowercase" | "ByteLevel" => 2,
        "Strip" | "StripAccents" => 1,
        "Prepend" => 1 + length(&part["prepend"]),
        "Replace" => match length(&part["pattern"]["String"]) {
            0 => 1 + length(&part["content"]), // a pattern, which may match nothing
            n => length(&part["content"]).div_ceil(n).max(1),
        },
        _ => return None,
    })
}

fn pre_tokenizer_growth(name: &str, part: &Value) -> Option<u64> {
    Some(match name {
        "ByteLevel" => 3, // two bytes for one, and a space before a piece
        "Metaspace" => 2 * part["replacement"].as_str().map_or(0, str::len) as u64 + 1,
        "Split" | "Digits" | "Punctuation" | "Whitespace" | "WhitespaceSplit" => 1,
        _ => return None,
    })
}
