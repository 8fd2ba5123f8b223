//! Files that a program's file names: the interpreter of a script, and the loader and library folders of an
//! ELF program (elf(5)). Without them it does not start, or starts with other libraries than outside of the
//! lab.

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, elf};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The part of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;
/// The entries that name folders of libraries.
const PATHS: [elf::DynamicTag; 2] = [elf::DT_RPATH, elf::DT_RUNPATH];

/// See the module's documentation. Folders may be missing, and repeated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) interpreters: Vec<PathBuf>,
    /// The program of `#!/usr/bin/env NAME`, which is searched for on PATH.
    pub(super) on_path: Option<String>,
    pub(super) libraries: Vec<PathBuf>,
}

impl Named {
    /// Nothing, if the file is of another kind or cannot be read.
    pub(super) fn by(program: &Path) -> Self {
        let Ok(file) = File::open(program) else { return Self::default() };
        let mut start = Vec::new();
        match (&file).take(FIRST_LINE).read_to_end(&mut start) {
            Ok(_) if start.starts_with(b"#!") => Self::by_script(&start[2..]),
            Ok(_) => {
                let origin = program.parent().unwrap_or(program).to_string_lossy();
                Self::by_elf(file, &origin).unwrap_or_default()
            }
            Err(_) => Self::default(),
        }
    }

    fn by_script(start: &[u8]) -> Self {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let Some(interpreter) = words.next().map(PathBuf::from) else { return Self::default() };
        // Its options, such as -S, and variables come before the name.
        let mut others = words.filter(|word| !word.starts_with('-') && !word.contains('='));
        let is_env = interpreter.file_name() == Some(OsStr::new("env"));
        let on_path = others.next().filter(|_| is_env).map(str::to_owned);
        Self { interpreters: vec![interpreter], on_path, libraries: Vec::new() }
    }

    /// Files that an ELF file of 64 bits names.
    fn by_elf(file: File, origin: &str) -> object::Result<Self> {
        let data = ReadCache::new(file);
        let header = elf::FileHeader64::<Endianness>::parse(&data)?;
        let endian = header.endian()?;
        let mut named = Self::default();
        for segment in header.program_headers(endian, &data)? {
            named.interpreters.extend(segment.interpreter(endian, &data)?.and_then(path));
        }
        let table = header.sections(endian, &data)?.dynamic_table(endian, &data)?;
        for entry in table.iter().filter(|entry| PATHS.contains(&entry.tag)) {
            let list = table.string(entry)?.to_vec();
            let list = String::from_utf8_lossy(&list).replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
            named.libraries.extend(list.split(':').map(PathBuf::from).filter(|folder| folder.is_absolute()));
        }
        Ok(named)
    }
}

/// The text at the start of these bytes, which ends with a zero.
fn path(bytes: &[u8]) -> Option<PathBuf> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(OsStr::from_bytes(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn a_script_names_its_interpreter_and_what_env_starts() {
        let of = |line: &str| Named::by_script(line.as_bytes());
        assert_eq!(of("/bin/sh -e\nexit\n").interpreters, [Path::new("/bin/sh")]);
        assert_eq!(of("/bin/sh -e x\n").on_path, None);
        for line in ["/usr/bin/env node\n", " /usr/bin/env -S A=1 node --flag\n", "/usr/bin/env node"] {
            assert_eq!(of(line).on_path.as_deref(), Some("node"), "{line}");
        }
        assert_eq!(of("\n"), Named::default());
    }

    #[test]
    fn an_elf_program_names_its_loader_and_the_folders_of_its_libraries() {
        let folder = std::env::temp_dir().join(format!("linerate-named-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.c"), "int main(void) { return 0; }\n").unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-Wl,-rpath,/nowhere/lib:$ORIGIN/../lib", "-o", "server", "main.c"]);
        let is_compiled = compile.current_dir(&folder).status().is_ok_and(|status| status.success());
        let named = Named::by(&folder.join("server"));
        let own = Named::by(&std::env::current_exe().unwrap());
        fs::remove_dir_all(&folder).unwrap();
        if is_compiled {
            assert_eq!(named.libraries, [PathBuf::from("/nowhere/lib"), folder.join("../lib")]);
            assert!(named.interpreters[0].is_absolute(), "{named:?}");
        }
        assert!(own.libraries.iter().all(|folder| folder.is_absolute()), "{own:?}");
    }
}
