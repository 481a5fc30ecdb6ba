//! What a compiler says of a caller's code, in the caller's own lines.

use std::sync::Arc;

use super::{CallerFn, Kernel};
use crate::graph::{ADDED, BESIDE, MARK};

/// A place in a caller's code.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The column, counted from 0 in UTF-16.
    column: usize,
    /// The line itself.
    text: String,
}

impl Kernel {
    /// What a compiler says of a place in the kernel's `source`, as the caller who wrote that place
    /// reads it; `None` where no caller did. Lines and columns count from 1, columns in bytes.
    pub fn complaint(
        &self,
        source: &str,
        [line, column]: [u32; 2],
        message: &str,
    ) -> Option<String> {
        let line = (line as usize).checked_sub(1)?;
        self.caller_fns()
            .into_iter()
            .find_map(|function: &Arc<CallerFn>| {
                let before = &source[..source.find(&function.text)?];
                let line = line.checked_sub(before.matches('\n').count())?;
                let marked = function.content.code.split('\n').nth(line)?;
                let own = CallerFn::own(function.number());
                let Place { column, text } = place(marked, own.len(), column as usize);
                let (name, line) = (&function.content.name, line + 1);
                let beside = CallerFn::beside(function.number());
                let message = message.replace(&own, "").replace(&beside, "");
                let message = message.trim();
                Some(format!(
                    "{name}:{line}:{}: {message}\n  {}",
                    column + 1,
                    text.trim()
                ))
            })
    }
}

/// The place in a marked line of the column that it has where marks are prefixes of so many bytes.
fn place(marked: &str, prefix: usize, column: usize) -> Place {
    let (mut text, mut printed, mut own) = (String::new(), 1, None);
    let mut is_added = false;
    for next in marked.chars() {
        if ADDED.contains(&next) {
            is_added = next == ADDED[0];
            continue;
        }
        if printed >= column {
            own.get_or_insert(text.encode_utf16().count());
        }
        if next == MARK || next == BESIDE {
            printed += prefix;
            continue;
        }
        printed += next.len_utf8();
        if !is_added {
            text.push(next);
        }
    }
    Place {
        column: own.unwrap_or(text.encode_utf16().count()),
        text,
    }
}
