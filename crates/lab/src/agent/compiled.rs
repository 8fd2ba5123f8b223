//! Maps of code that was compiled at run time: `/tmp/perf-PID.map` of Node.js, Python and the JVM, as the
//! process has it. A line has the start and the length of a function in hexadecimal, and its name.

use super::jvm;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;

/// The part of a map that is read. Others write it.
const LONGEST: u64 = 64 << 20;

/// Functions by their starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Compiled(BTreeMap<u64, (u64, String)>);

impl Compiled {
    /// The functions of a process's map; none without a map.
    pub(super) fn of_process(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let own =
            status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_ascii_whitespace().last());
        let Some(own) = own else { return Self::default() };
        let folder = format!("/proc/{process}/root/tmp");
        jvm::write_map(&format!("{folder}/.java_pid{own}"));
        let path = format!("{folder}/perf-{own}.map");
        // A link could lead to a file of others.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let mut text = Vec::new();
        let read = is_file.then(|| File::open(&path)?.take(LONGEST).read_to_end(&mut text));
        if read.is_some_and(|read| read.is_ok()) {
            Self::read(&String::from_utf8_lossy(&text))
        } else {
            Self::default()
        }
    }

    /// The later of two at one place counts: code that is no longer needed gives its place to other code.
    fn read(text: &str) -> Self {
        let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok();
        let function = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (start, length) = (number(words.next()?)?, number(words.next()?)?);
            Some((start, (length, words.next()?.to_owned())))
        };
        Self(text.lines().filter_map(function).collect())
    }

    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let (start, (length, name)) = self.0.range(..=address).next_back()?;
        (address - start < *length).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_an_address_in_it() {
        let map =
            Compiled::read("7f00 10 JS:*a /a b.js:1:2\n0x7f20 0x8 int Server.b()\nbad\n7f00 20 JS:*c\n");
        let names = [0x7eff, 0x7f00, 0x7f1f, 0x7f20, 0x7f27, 0x7f28].map(|address| map.name(address));
        let (c, b) = (Some("JS:*c"), Some("int Server.b()"));
        assert_eq!(names, [None, c, c, b, b, None]);
    }

    #[test]
    fn a_process_without_a_map_has_no_functions() {
        assert_eq!(Compiled::of_process(std::process::id()), Compiled::default());
    }
}
