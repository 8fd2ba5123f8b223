//! Remarks about the programs of a comparison that the user gives: what they miss in the lab, without a sign
//! of it in their output.

use crate::lab::agent::{is_alone, unseen};
use std::path::{Path, PathBuf};

/// Remarks about one program; `place` is its setting on the command line.
pub(super) fn about(place: &str, program: &Path) -> Vec<String> {
    let alone = is_alone(program).then(|| {
        format!(
            "{place}: {} is beside files of others, so the lab has it without these; if it needs some, put \
             it and them into a folder of their own",
            program.display()
        )
    });
    let named = unseen(program).into_iter().map(|path| {
        format!(
            "{place}: its script names {}, which is not in the lab: of the user's files there is what is in \
             a program's own folder",
            path.display()
        )
    });
    alone.into_iter().chain(named).collect()
}

/// A remark about the lengths of both paths, which move the stacks of their processes
/// (docs/decisions/safety.md).
pub(super) fn about_lengths(programs: [Option<&PathBuf>; 2]) -> Option<String> {
    let setting = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    let lengths = programs.map(|program| program.map(|path| path.as_os_str().len()));
    let is_fixed = setting.is_ok_and(|value| value.trim() == "0");
    uneven(lengths, is_fixed)
}

fn uneven([base, head]: [Option<usize>; 2], is_fixed: bool) -> Option<String> {
    (is_fixed && base != head).then(|| {
        "the kernel does not randomise addresses here, so the length of a program's path moves its stack, \
         which alone can cost a percent: give both programs, with paths of one length, or set \
         kernel.randomize_va_space to 2"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_unlike_lengths_are_worth_a_remark_where_addresses_are_fixed() {
        assert!(uneven([Some(10), Some(11)], true).is_some_and(|text| text.contains("randomize_va_space")));
        assert!(uneven([None, Some(11)], true).is_some());
        for (lengths, is_fixed) in [([Some(10), Some(11)], false), ([Some(10); 2], true), ([None; 2], true)] {
            assert_eq!(uneven(lengths, is_fixed), None);
        }
    }

    #[test]
    fn a_program_beside_files_of_others_is_named_and_one_of_the_system_is_not() {
        assert_eq!(about("--head program=/bin/sh", Path::new("/bin/sh")), Vec::<String>::new());
        let program = PathBuf::from("/tmp").join(format!("linerate-remarks-{}", std::process::id()));
        std::fs::write(&program, format!("#!/bin/sh\nexec {} /etc/passwd\n", program.display())).unwrap();
        let remarks = about("--head program=x", &program);
        std::fs::remove_file(&program).unwrap();
        assert!(remarks.len() == 1 && remarks[0].starts_with("--head program=x: "), "{remarks:?}");
        assert!(remarks[0].contains("is beside files of others"), "{remarks:?}");
    }
}
