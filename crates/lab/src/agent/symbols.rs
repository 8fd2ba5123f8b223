//! Names of functions by their addresses: ELF and DWARF with inlined functions, maps of compilers at run
//! time, and the kernel's own list.

use super::compiled::Compiled;
use blazesym::Pid;
use blazesym::helper::ElfResolver;
use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, ProcessMemberInfo, ProcessMemberType, Resolve, Symbolized, Symbolizer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Names are data of others: no longer than this.
const LONGEST_NAME: usize = 160;
/// Marks in a chain of addresses, see perf_event_open(2): frames of the kernel or of the program follow.
const FIRST_MARK: u64 = -4095_i64 as u64;
const KERNEL_MARK: u64 = -128_i64 as u64;
pub(super) const USER_MARK: u64 = -512_i64 as u64;
/// The prefix of a kernel's function.
pub(super) const KERNEL: &str = "[k] ";
/// The name of code of no file without a map.
const UNKNOWN: &str = "[unknown]";
/// Code without a symbol is told by its library and its place, in steps of this length.
const BLOCK: u64 = 4096;

/// Names of addresses.
type Names = BTreeMap<u64, Vec<String>>;

/// Finds names, and remembers the files that it has read and the names that it has found.
pub(super) struct Symbols {
    /// The kernel's list is the same for all processes, and long.
    kernel: Symbolizer,
    user: Symbolizer,
    /// The names of each process.
    found: BTreeMap<u32, Names>,
}

impl Default for Symbols {
    fn default() -> Self {
        let kernel = Symbolizer::builder().enable_code_info(false).build();
        Self { kernel, user: of_programs(), found: BTreeMap::new() }
    }
}

fn of_programs() -> Symbolizer {
    Symbolizer::builder()
        .enable_code_info(false)
        .enable_inlined_fns(true)
        .set_process_dispatcher(as_the_process_has_it)
        .build()
}

/// A file of a process that is in a mount namespace of its own.
fn as_the_process_has_it(info: ProcessMemberInfo<'_>) -> blazesym::Result<Option<Box<dyn Resolve>>> {
    let ProcessMemberType::Path(path) = info.member_entry else { return Ok(None) };
    // It is `/proc/PID/map_files/...`.
    let Some(process) = path.maps_file.ancestors().nth(2) else { return Ok(None) };
    let below = path.symbolic_path.strip_prefix("/").unwrap_or(&path.symbolic_path);
    Ok(ElfResolver::open(process.join("root").join(below))
        .ok()
        .map(|resolver| Box::new(resolver) as Box<dyn Resolve>))
}

/// An address of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Frame {
    Kernel(u64),
    User(u64),
}

/// The frames of a chain, the innermost first. A caller's address is that after its call, so one less is
/// inside of it.
fn frames(chain: &[u64]) -> Vec<Frame> {
    let (mut frames, mut in_kernel) = (Vec::new(), false);
    for address in chain {
        match *address {
            KERNEL_MARK => in_kernel = true,
            mark if mark >= FIRST_MARK => in_kernel = false,
            // A program without frame pointers leaves any number there, and no code is at 0.
            0 => {}
            address => {
                let at = address - u64::from(!frames.is_empty());
                frames.push(if in_kernel { Frame::Kernel(at) } else { Frame::User(at) });
            }
        }
    }
    frames
}

impl Symbols {
    /// Forgets processes that have ended, and their files.
    pub(super) fn forget_programs(&mut self) {
        self.user = of_programs();
        self.found.clear();
    }

    /// Chains of processes as names, the outermost frame first.
    pub(super) fn resolve(&mut self, counts: BTreeMap<(u32, Vec<u64>), u64>) -> Vec<(Vec<String>, u64)> {
        let chains: Vec<(u32, Vec<Frame>, u64)> =
            counts.into_iter().map(|((process, chain), count)| (process, frames(&chain), count)).collect();
        let mut wanted = BTreeMap::<u32, BTreeSet<u64>>::new();
        let mut in_kernel = BTreeSet::new();
        for (process, chain, _) in &chains {
            for frame in chain {
                match frame {
                    Frame::Kernel(address) => _ = in_kernel.insert(*address),
                    Frame::User(address) => _ = wanted.entry(*process).or_default().insert(*address),
                }
            }
        }
        let kernel = names(&self.kernel, &Source::Kernel(Kernel::default()), &in_kernel);
        for (process, mut addresses) in wanted {
            let mut known = self.found.remove(&process).unwrap_or_default();
            // Code that had no name is perhaps in a map by now.
            addresses.retain(|address| known.get(address).is_none_or(|names| is_unknown(names)));
            if !addresses.is_empty() {
                known.extend(self.of_process(process, &addresses));
            }
            self.found.insert(process, known);
        }
        let names_of = |process: &u32, frame: &Frame| -> Vec<String> {
            match frame {
                Frame::Kernel(address) => kernel.get(address).map_or_else(
                    || vec![format!("{KERNEL}unknown")],
                    |names| names.iter().map(|name| format!("{KERNEL}{name}")).collect(),
                ),
                Frame::User(address) => self
                    .found
                    .get(process)
                    .and_then(|names| names.get(address).cloned())
                    .unwrap_or_else(|| vec![UNKNOWN.to_owned()]),
            }
        };
        let resolved = chains.iter().map(|(process, chain, count)| {
            let names: Vec<String> =
                chain.iter().rev().flat_map(|frame| names_of(process, frame)).map(cleaned).collect();
            (if names.is_empty() { vec![UNKNOWN.to_owned()] } else { names }, *count)
        });
        resolved.collect()
    }

    fn of_process(&self, process: u32, addresses: &BTreeSet<u64>) -> Names {
        // Files are opened as the process has them, which needs no right of the host's.
        let source = Process { map_files: false, perf_map: false, ..Process::new(Pid::from(process)) };
        let compiled = Compiled::of_process(process);
        let mut names = names(&self.user, &Source::Process(source), addresses);
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for address in addresses.iter().filter(|address| !names.contains_key(*address)).collect::<Vec<_>>() {
            let name = compiled.name(*address).map(str::to_owned).or_else(|| place(&maps, *address));
            names.insert(*address, name.into_iter().collect());
        }
        names
    }
}

/// Names of addresses, inlined functions after those that contain them; without those that have none.
fn names(symbolizer: &Symbolizer, source: &Source<'_>, addresses: &BTreeSet<u64>) -> Names {
    let list: Vec<u64> = addresses.iter().copied().collect();
    let Ok(found) = symbolizer.symbolize(source, Input::AbsAddr(&list)) else {
        return BTreeMap::new();
    };
    let of_symbol = |found: Symbolized<'_>| match found {
        Symbolized::Sym(symbol) => {
            let inlined = symbol.inlined.iter().map(|inlined| inlined.name.to_string());
            Some([symbol.name.to_string()].into_iter().chain(inlined).collect())
        }
        Symbolized::Unknown(_) => None,
    };
    list.into_iter().zip(found).filter_map(|(address, found)| Some((address, of_symbol(found)?))).collect()
}

fn is_unknown(names: &[String]) -> bool {
    names.iter().all(|name| name == UNKNOWN)
}

/// The library of an address and its place in it, by `/proc/PID/maps`; `None` where there is no code.
fn place(maps: &str, address: u64) -> Option<String> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|end| u64::from_str_radix(end, 16).ok());
        if !(start?..end?).contains(&address) || !fields.next()?.contains('x') {
            return None;
        }
        let offset = (address - start?).wrapping_add(u64::from_str_radix(fields.next()?, 16).ok()?);
        Some(match fields.nth(2) {
            None => UNKNOWN.to_owned(),
            Some(name) if name.starts_with('[') => name.to_owned(),
            Some(file) => {
                let name = file.rsplit('/').next().unwrap_or(file);
                format!("{name}+{:#x}", offset / BLOCK * BLOCK)
            }
        })
    })
}

/// The name of a function that was compiled at run time, without what its compiler says of it: Node.js marks
/// each of its compilers, and one function may have been compiled by several.
fn of_compiler(name: String) -> String {
    let plain = name.strip_prefix("py::").or_else(|| {
        let kinds = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
        let of_node = kinds.iter().find_map(|kind| name.strip_prefix(kind))?;
        Some(of_node.trim_start_matches(['*', '~', '^', '+', '\'']))
    });
    plain.map(str::to_owned).unwrap_or(name)
}

/// A name that is safe to print and not too long.
fn cleaned(name: String) -> String {
    let name = of_compiler(name);
    let is_plain = name.len() <= LONGEST_NAME && !name.contains(|c: char| c.is_control());
    if is_plain {
        return name;
    }
    name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_kernel_and_program_are_told_apart_and_callers_are_inside_of_their_calls() {
        let user = -512_i64 as u64;
        let chain = [KERNEL_MARK, 0xffff_0001, 0xffff_0010, user, 0x401, 0x500];
        let expected =
            [Frame::Kernel(0xffff_0001), Frame::Kernel(0xffff_000f), Frame::User(0x400), Frame::User(0x4ff)];
        assert_eq!(frames(&chain), expected);
        assert_eq!(frames(&[user, 0x401, 0x500]), [Frame::User(0x401), Frame::User(0x4ff)]);
        assert_eq!(frames(&[user, 0x401, 0, 0x500]), [Frame::User(0x401), Frame::User(0x4ff)]);
    }

    #[test]
    fn code_without_a_symbol_is_told_by_its_library_and_page() {
        let maps = "400000-402000 r-xp 00001000 08:01 7   /opt/server/libx.so.1\n\
                    500000-501000 rwxp 00000000 00:00 0\n\
                    600000-601000 rw-p 00000000 00:00 0 [heap]\n\
                    7fff0000-7fff1000 r-xp 00000000 00:00 0 [vdso]\n";
        let place = |address| place(maps, address);
        assert_eq!(place(0x40_1234).as_deref(), Some("libx.so.1+0x2000"));
        assert_eq!(place(0x7fff_0001).as_deref(), Some("[vdso]"));
        assert_eq!(place(0x50_0000).as_deref(), Some("[unknown]"), "compiled at run time");
        assert_eq!([place(0x60_0000), place(1)], [None, None], "no code: a frame pointer that is none");
    }

    #[test]
    fn names_are_data_of_others() {
        assert_eq!(cleaned("a\u{1b}[31mb".into()), "a[31mb");
        assert_eq!(cleaned("x".repeat(1000)).len(), LONGEST_NAME);
        assert_eq!(cleaned("JS:*audit /srv/a.js:3:7".into()), cleaned("JS:~audit /srv/a.js:3:7".into()));
        assert_eq!(cleaned("py::audit:/srv/a.py".into()), "audit:/srv/a.py");
    }

    #[inline(never)]
    fn named_function(value: u64) -> u64 {
        std::hint::black_box(value) + 1
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let address = named_function as fn(u64) -> u64 as usize as u64;
        let chain = vec![-512_i64 as u64, address + 1];
        let counts = BTreeMap::from([((std::process::id(), chain), 7)]);
        let resolved = Symbols::default().resolve(counts);
        assert!(resolved[0].0.iter().any(|name| name.contains("named_function")), "{resolved:?}");
        assert_eq!(resolved[0].1, 7);
    }
}
