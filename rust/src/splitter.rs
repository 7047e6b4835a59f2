//! Runs the pre-tokenizer pattern that a tokenizer.json carries, never a guess at its family.
//!
//! Two engines give the same pieces. fancy-regex understands every pattern, but it backtracks: it
//! fails on a run of about a million spaces (its stack is bounded), and the tokenizers crate takes
//! that failure for the end of the matches. Most patterns of byte-level tokenizers need look-ahead in
//! one place only, their ending `\s+(?!\S)|\s+`. That one is done here by hand, and the rest is a
//! plain regular expression: linear in time, whatever the text.

use regex_automata::meta::Regex as Automaton;
use regex_automata::Input;

use crate::Fallible;

/// "White space up to the last one before a word; failing that, white space."
const SPACES_BEFORE_WORD: &str = r"|\s+(?!\S)|\s+";
/// The pattern of GPT-2, which ByteLevel with `use_regex` stands for.
pub const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Longest pattern taken, and the most that one part of it may need once compiled: enough for every
/// published tokenizer (the longest seen has 700 bytes), little enough for a hostile file.
const MAX_PATTERN_BYTES: usize = 4096;
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// Wrong turns in one match before a backtracking pattern gives up; published ones take one or two.
const MAX_BACKTRACKS: usize = 10_000;

#[derive(Debug)]
pub enum Splitter {
    /// Pattern 0 is everything before the ending, pattern 1 is `\s+`.
    Linear(Box<Automaton>),
    Backtracking(Box<fancy_regex::Regex>),
}

/// Compiles with bounded memory. Also the check that a pattern of the file is sound.
pub fn compile(pattern: &str) -> Fallible<fancy_regex::Regex> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!(
            "a pattern of {} bytes; at most {MAX_PATTERN_BYTES} are taken",
            pattern.len()
        ));
    }
    fancy_regex::RegexBuilder::new(pattern)
        .delegate_size_limit(MAX_COMPILED_BYTES)
        .backtrack_limit(MAX_BACKTRACKS)
        .build()
        .map_err(|e| format!("pattern {pattern:?} does not compile: {e}"))
}

impl Splitter {
    pub fn new(pattern: &str) -> Fallible<Splitter> {
        let backtracking = compile(pattern)?;
        Ok(match linear(pattern) {
            Some(automaton) => Splitter::Linear(Box::new(automaton)),
            None => Splitter::Backtracking(Box::new(backtracking)),
        })
    }

    /// Calls `piece` for every match and every gap between matches, in order; they cover the text.
    pub fn split<'t>(
        &self,
        text: &'t str,
        mut piece: impl FnMut(&'t str) -> Fallible<()>,
    ) -> Fallible<()> {
        let mut done = 0;
        let mut take = |start: usize, end: usize| -> Fallible<()> {
            if done < start {
                piece(&text[done..start])?;
            }
            if start < end {
                piece(&text[start..end])?;
            }
            done = end;
            Ok(())
        };
        match self {
            Splitter::Linear(automaton) => {
                let mut at = 0;
                while let Some(found) = automaton.search(&Input::new(text).range(at..)) {
                    at = found.end();
                    if found.pattern().as_usize() == 1 {
                        at = before_word(text, found.start(), found.end());
                    }
                    take(found.start(), at)?;
                }
            }
            Splitter::Backtracking(regex) => {
                for found in regex.find_iter(text) {
                    let found = found.map_err(pattern_gave_up)?;
                    take(found.start(), found.end())?;
                }
            }
        }
        take(text.len(), text.len())
    }
}

pub fn pattern_gave_up(error: fancy_regex::Error) -> String {
    format!("the tokenizer's pattern gave up on this text: {error}")
}

/// Where `\s+(?!\S)|\s+` ends, given the whole run of white space: before its last character if a
/// word follows and the run has more than one.
fn before_word(text: &str, start: usize, end: usize) -> usize {
    if end == text.len() {
        return end;
    }
    match text[start..end].char_indices().next_back() {
        Some((last, _)) if last > 0 => start + last,
        _ => end,
    }
}

fn linear(pattern: &str) -> Option<Automaton> {
    let (head, patterns): (&str, &[&str]) = match pattern.strip_suffix(SPACES_BEFORE_WORD) {
        Some(head) => (head, &[head, r"\s+"]),
        None => (pattern, &[pattern]),
    };
    // A flag that reaches past its group could change what the ending means, and a match of nothing
    // is stepped over differently by each engine.
    let groups_are_plain = head.match_indices("(?").all(|(at, _)| {
        let rest = &head[at + 2..];
        rest.starts_with(':') || rest.starts_with("i:")
    });
    let never_empty = regex_syntax::parse(head)
        .is_ok_and(|hir| hir.properties().minimum_len().is_some_and(|n| n > 0));
    if !groups_are_plain || !never_empty {
        return None;
    }
    Automaton::builder()
        .configure(Automaton::config().nfa_size_limit(Some(MAX_COMPILED_BYTES)))
        .build_many(patterns)
        .ok()
}
