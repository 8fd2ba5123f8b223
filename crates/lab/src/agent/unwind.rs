//! Callers of a sampled function by the unwind tables of its program (`.eh_frame`, `.debug_frame`): most
//! programs have no frame pointers. Where there is no table, as in code that was compiled at run time, frame
//! pointers are followed.

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef, elf};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as UnwinderOfCpu,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as UnwinderOfCpu,
};

/// The registers of a sample, as bits of `enum perf_event_*_regs`: frame pointer, (link,) stack, instruction.
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
/// Frames of a stack that are looked for.
const DEEPEST: usize = 200;
/// Code after the call in the function with which Python 3.12 calls each of its own for `perf`:
/// `add $8, %rsp; ret`. It saves no frame pointer.
const PYTHON_RETURNS: [u8; 5] = [0x48, 0x83, 0xc4, 0x08, 0xc3];

/// The state of a program when a sample was taken.
pub(super) struct Stopped {
    registers: Vec<u64>,
    /// The content of its stack, from the stack pointer on.
    stack: Vec<u8>,
}

/// Programs by their processes, and the tables of files that they have.
#[derive(Default)]
pub(super) struct Tables {
    files: BTreeMap<String, Option<Arc<Sections>>>,
    cache: Cache,
}

/// A process: its code, and the tables of it.
pub(super) struct Program {
    unwinder: UnwinderOfCpu<Arc<[u8]>>,
    memory: Option<File>,
    /// Code of no file.
    unnamed: Vec<Range<u64>>,
}

/// Addresses and bytes of a section.
type Part = (Range<u64>, Arc<[u8]>);

/// The parts of a file for unwinding: sections by name, with their addresses, and its segments of code.
struct Sections {
    parts: BTreeMap<Vec<u8>, Part>,
    /// Offset in the file, length, address.
    code: Vec<[u64; 3]>,
}

impl Stopped {
    /// `None` without registers: the sample is of a thread of the kernel, or of a program of 32 bits.
    pub(super) fn new(registers: &[u64], stack: &[u8]) -> Option<Self> {
        let is_complete = registers.len() == REGISTERS.count_ones() as usize && !stack.is_empty();
        is_complete.then(|| Self { registers: registers.to_vec(), stack: stack.to_vec() })
    }

    #[cfg(target_arch = "x86_64")]
    fn unpack(&self) -> (u64, u64, Registers) {
        let [bp, sp, ip] = self.registers[..] else { unreachable!("checked in `new`") };
        (ip, sp, Registers::new(ip, sp, bp))
    }

    #[cfg(target_arch = "aarch64")]
    fn unpack(&self) -> (u64, u64, Registers) {
        let [fp, lr, sp, pc] = self.registers[..] else { unreachable!("checked in `new`") };
        (pc, sp, Registers::new(lr, sp, fp))
    }
}

impl Tables {
    pub(super) fn forget_programs(&mut self) {
        *self = Self::default();
    }

    /// A process as it is now; `None` if it has ended.
    pub(super) fn program(&mut self, process: u32) -> Option<Program> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let memory = File::open(format!("/proc/{process}/mem")).ok();
        let mut program = Program { unwinder: UnwinderOfCpu::new(), memory, unnamed: Vec::new() };
        for mapping in maps.lines().filter_map(mapping) {
            let Mapping { range, offset, file } = mapping;
            if file.is_empty() {
                program.unnamed.push(range);
                continue;
            }
            let found = self.files.entry(file.to_owned()).or_insert_with(|| {
                let sections = match &program.memory {
                    Some(memory) if file == "[vdso]" => of_memory(memory, &range),
                    _ => File::open(format!("/proc/{process}/root{file}"))
                        .ok()
                        .and_then(|file| Sections::read(&ReadCache::new(file))),
                };
                sections.map(Arc::new)
            });
            let bias =
                found.as_ref().and_then(|sections| Some((sections, sections.bias(range.start, offset)?)));
            if let Some((sections, bias)) = bias {
                program.unwinder.add_module(Module::new(file.to_owned(), range, bias, sections.explicit()));
            }
        }
        Some(program)
    }

    /// Addresses of the sampled function and its callers, the innermost first, and whether the last one is
    /// known to have no caller.
    pub(super) fn unwind(&mut self, program: &Program, stopped: &Stopped) -> (Vec<u64>, bool) {
        let (ip, sp, mut registers) = stopped.unpack();
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).ok_or(())? as usize;
            let bytes = stopped.stack.get(at..at.saturating_add(8)).ok_or(())?;
            Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let (mut chain, mut address) = (vec![ip], FrameAddress::from_instruction_pointer(ip));
        while chain.len() < DEEPEST {
            let returned = address.is_return_address().then(|| address.address());
            let next = match returned.and_then(|at| program.python(at, &mut registers, &mut read)) {
                Some(next) => Ok(Some(next)),
                None => program.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read),
            };
            let Ok(next) = next else { return (chain, false) };
            let Some(caller) = next.and_then(FrameAddress::from_return_address) else { return (chain, true) };
            chain.push(caller.address());
            address = caller;
        }
        (chain, false)
    }
}

impl Program {
    /// The caller of a function with which Python calls its own.
    #[cfg(target_arch = "x86_64")]
    fn python(
        &self,
        address: u64,
        registers: &mut Registers,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        self.unnamed.iter().find(|range| range.contains(&address))?;
        let mut code = [0; PYTHON_RETURNS.len()];
        self.memory.as_ref()?.read_exact_at(&mut code, address).ok()?;
        let caller = (code == PYTHON_RETURNS).then(|| read(registers.sp() + 8).ok())??;
        registers.set_sp(registers.sp() + 16);
        registers.set_ip(caller);
        Some(caller)
    }

    #[cfg(target_arch = "aarch64")]
    fn python(&self, _: u64, _: &mut Registers, _: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<u64> {
        None
    }
}

/// A line of `/proc/PID/maps` with code.
struct Mapping<'a> {
    range: Range<u64>,
    offset: u64,
    file: &'a str,
}

fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let is_code = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let file = fields.nth(2).unwrap_or_default().trim();
    let known = file.is_empty() || file.starts_with('/') || file == "[vdso]";
    (is_code && known).then_some(Mapping { range: number(start)?..number(end)?, offset, file })
}

fn of_memory(memory: &File, range: &Range<u64>) -> Option<Sections> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    memory.read_exact_at(&mut bytes, range.start).ok()?;
    Sections::read(&*bytes)
}

impl Sections {
    fn read<'a>(file: impl ReadRef<'a>) -> Option<Self> {
        let header = elf::FileHeader64::<Endianness>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, file).ok()?.iter();
        let code = segments
            .filter(|one| one.p_type(endian) == elf::PT_LOAD && (one.p_flags(endian) & elf::PF_X).0 != 0)
            .map(|one| [one.p_offset(endian), one.p_filesz(endian), one.p_vaddr(endian)])
            .collect();
        let sections = header.sections(endian, file).ok()?;
        let mut parts = BTreeMap::new();
        for section in sections.iter() {
            let name = sections.section_name(endian, section).ok()?;
            let is_compressed = (section.sh_flags(endian) & elf::SHF_COMPRESSED).0 != 0;
            if [&b".eh_frame"[..], b".eh_frame_hdr", b".debug_frame"].contains(&name) && !is_compressed {
                let start = section.sh_addr(endian);
                let range = start..start + section.sh_size(endian);
                parts.insert(name.to_vec(), (range, section.data(endian, file).ok()?.into()));
            }
            if [&b".text"[..], b".got"].contains(&name) {
                let start = section.sh_addr(endian);
                parts.insert(name.to_vec(), (start..start + section.sh_size(endian), Arc::default()));
            }
        }
        Some(Self { parts, code })
    }

    /// The number to add to an address of the file, where its code at `offset` is at `start`.
    fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let holds = |[at, length, _]: &&[u64; 3]| *at < offset + 1 + *length && offset < at + length;
        let [at, _, address] = self.code.iter().find(holds)?;
        Some(start.wrapping_sub(offset).wrapping_sub(address.wrapping_sub(*at)))
    }

    fn explicit(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        let range = |name: &str| self.parts.get(name.as_bytes()).map(|(range, _)| range.clone());
        let data = |name: &str| self.parts.get(name.as_bytes()).map(|(_, data)| data.clone());
        ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        }
    }
}
