//! The function to which a sample belongs.

use super::causes;
use linerate_model::PairProfile;
use std::collections::{BTreeMap, BTreeSet};

/// Code of no file and of no map.
const NAMELESS: &str = "[unknown]";
/// The prefix of a kernel's function.
const KERNEL: &str = "[k] ";
/// A function is one side's alone if the other has less than this part of its cost.
const OTHERS: f64 = 0.05;
/// A function is unknown to a side where it has less than the first share of its cost on the other, and less
/// than the second of all that the side does: a call that does nothing has a sample at times.
const UNKNOWN: f64 = 0.005;
const UNSEEN: f64 = 0.002;
/// A function explains nothing if it is most of what its side does, and much more than the difference, or if
/// most of its own time is in system calls: its name is that of a program or of its main loop.
const MOST: f64 = 0.5;
const MUCH_MORE: f64 = 1.5;
/// The least part of a request's CPU time that makes a function one of a side.
const LEAST: f64 = 0.01;
/// Where the kernel enables interrupts: a timer that was late, as in virtual machines, has its sample there.
const SWITCH: &str = "finish_task_switch";
const LATE: [&str; 5] = [
    "_raw_spin_unlock_irqrestore",
    "_raw_spin_unlock_irq",
    "__local_bh_enable_ip",
    "handle_softirqs",
    "pv_native_safe_halt",
];
/// Groups of that time: a thread that waits gives its CPU to another, and to wake one on an idle CPU takes an
/// interrupt, which a slower server needs more often.
const SWITCHES: &str = "switches of threads";
const INTERRUPTS: &str = "interrupts and wake-ups";
/// Each system call has some of it, whatever it does: more calls have more.
const ENTRY: &str = "entries to the kernel";
const PAGE_FAULTS: &str = "kernel: page faults";
/// Prefixes of the name of a system call in the name of its function.
const CALLS: [&str; 6] = ["__x64_sys_", "__arm64_sys_", "__riscv_sys_", "__ia32_sys_", "ksys_", "__sys_"];

/// Labels of stacks. A label is the index of a name; those that no function has follow the profile's own.
pub(super) struct Labels<'a> {
    pair: &'a PairProfile,
    further: Vec<String>,
    of_stacks: Vec<u32>,
    /// Functions of scripts, and those of one side alone that are part of their cost.
    callees: BTreeMap<u32, u32>,
}

impl<'a> Labels<'a> {
    /// By the costs of functions with all that they call, the part of these in system calls, the whole of
    /// both sides, and the times of their stacks.
    pub(super) fn new(
        pair: &'a PairProfile,
        inclusive: &BTreeMap<u32, [f64; 2]>,
        in_calls: &BTreeMap<u32, [f64; 2]>,
        whole: [f64; 2],
        times: &[BTreeMap<u32, f64>; 2],
    ) -> Self {
        let is_of_one_side = |us: &[f64; 2], in_calls: &[f64; 2]| {
            [(0, 1), (1, 0)].into_iter().any(|(own, other)| {
                let most = (MOST * whole[own]).max(MUCH_MORE * (whole[own] - whole[other]));
                us[own] >= LEAST * whole[own]
                    && us[own] <= most
                    && us[other] < OTHERS * us[own]
                    && in_calls[own] <= MOST * us[own]
            })
        };
        let is_named =
            |name: u32| !is_place(&pair.names[name as usize]) && !is_wrapper(&pair.names[name as usize]);
        let of_calls = |name: &u32| in_calls.get(name).unwrap_or(&[0.0; 2]);
        let own =
            || inclusive.iter().filter(|(name, us)| is_named(**name) && is_of_one_side(us, of_calls(name)));
        // A function that calls it, and costs the other side little, is not the cause.
        let is_unknown = |us: &[f64; 2]| {
            [(0, 1), (1, 0)]
                .into_iter()
                .any(|(own, other)| us[other] < UNKNOWN * us[own] && us[other] < UNSEEN * whole[other])
        };
        let unknown_there = own().filter(|(_, us)| is_unknown(us)).map(|(name, _)| *name).collect();
        let own = [unknown_there, own().map(|(name, _)| *name).collect()];
        let mut labels = Self { pair, further: Vec::new(), of_stacks: Vec::new(), callees: BTreeMap::new() };
        labels.of_stacks = pair.stacks.iter().map(|frames| labels.label(frames, &own)).collect();
        own[1].iter().for_each(|name| labels.join(*name, times));
        labels
    }

    /// Makes a function that one side alone has a part of the script's function that calls it: Node.js puts
    /// functions into their callers, and says of none where it is, so what calls it may be a part of the
    /// caller's own time.
    fn join(&mut self, name: u32, times: &[BTreeMap<u32, f64>; 2]) {
        let of = |frame: u32| &*self.pair.names[frame as usize];
        if is_of_script(of(name)) || of(name).starts_with(KERNEL) {
            return;
        }
        let callers = times.iter().find_map(|times| self.caller(name, times));
        let Some(caller) = callers.filter(|caller| is_of_script(of(*caller))) else { return };
        for (label, frames) in self.of_stacks.iter_mut().zip(&self.pair.stacks) {
            if *label == name && frames.contains(&caller) {
                *label = caller;
            }
        }
        self.callees.entry(caller).or_insert(name);
    }

    /// The function of one side alone that is part of this one's cost.
    pub(super) fn callee(&self, label: u32) -> Option<u32> {
        self.callees.get(&label).copied()
    }

    pub(super) fn of_stack(&self, stack: u32) -> u32 {
        self.of_stacks[stack as usize]
    }

    pub(super) fn name(&self, label: u32) -> &str {
        let known = self.pair.names.len();
        let further = || &self.further[label as usize - known];
        let name = self.pair.names.get(label as usize).unwrap_or_else(further);
        name.strip_prefix(KERNEL).unwrap_or(name)
    }

    /// `own`: functions of one side alone, those first that the other side does not know.
    fn label(&mut self, frames: &[u32], own: &[BTreeSet<u32>; 2]) -> u32 {
        let names = |frame: &u32| self.pair.names[*frame as usize].as_str();
        let is_kernel = |frame: &&u32| names(frame).starts_with(KERNEL);
        // A library's work has its name, and not that of what calls it.
        if let Some(cause) = frames.iter().find(|frame| causes::is_work(names(frame))) {
            return self.of_place(*cause);
        }
        let outermost =
            |own: &BTreeSet<u32>| frames.iter().find(|frame| own.contains(frame) && !is_kernel(frame));
        if let Some(outermost) = own.iter().find_map(outermost) {
            return *outermost;
        }
        // Code that a program makes without a name, such as V8's builtins, is part of what calls it.
        let is_named = |frame: &&u32| names(frame) != NAMELESS;
        let Some(innermost) = frames.iter().rev().find(is_named).or(frames.last()) else {
            return self.further("unknown".to_owned());
        };
        match of_kernel(&in_kernel(self.pair, frames)) {
            Some(group) if is_kernel(&innermost) => self.further(group),
            _ => self.of_place(*innermost),
        }
    }

    /// The label of a function; the library, where it has no name.
    fn of_place(&mut self, frame: u32) -> u32 {
        match self.pair.names[frame as usize].split_once("+0x") {
            Some((library, _)) if library.contains(".so") => self.further(library.to_owned()),
            _ => frame,
        }
    }

    /// The function that called most of what has this label, by time.
    pub(super) fn caller(&self, label: u32, times: &BTreeMap<u32, f64>) -> Option<u32> {
        let own = |(stack, _): &(&u32, &f64)| self.of_stack(**stack) == label;
        let (mut all, mut callers) = (0.0, BTreeMap::<u32, f64>::new());
        for (stack, time) in times.iter().filter(own) {
            let frames = &self.pair.stacks[*stack as usize];
            let own = frames.iter().position(|frame| *frame == label);
            let in_kernel = |frame: &u32| self.pair.names[*frame as usize].starts_with(KERNEL);
            let end = own.or_else(|| frames.iter().position(in_kernel)).unwrap_or(frames.len());
            let is_known = |frame: &&u32| {
                let name = &self.pair.names[**frame as usize];
                !is_place(name) && !is_wrapper(name)
            };
            let caller = frames[..end].iter().rev().find(is_known);
            all += time;
            if let Some(caller) = caller {
                *callers.entry(*caller).or_default() += time;
            }
        }
        let (caller, time) = callers.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (time >= MOST * all).then_some(caller)
    }

    fn further(&mut self, name: String) -> u32 {
        let known = self.pair.names.len();
        let at = self.further.iter().position(|further| *further == name).unwrap_or_else(|| {
            self.further.push(name);
            self.further.len() - 1
        });
        (known + at) as u32
    }
}

/// The functions of a stack that is in a system call; none of another.
pub(super) fn callers_in_system_call(pair: &PairProfile, stack: u32) -> BTreeSet<u32> {
    let frames = &pair.stacks[stack as usize];
    let is_in_call = of_kernel(&in_kernel(pair, frames)).is_some_and(|group| group.contains("(2)"));
    if is_in_call { frames.iter().copied().collect() } else { BTreeSet::new() }
}

/// The kernel's functions of a stack, without their prefix.
fn in_kernel<'a>(pair: &'a PairProfile, frames: &[u32]) -> Vec<&'a str> {
    frames.iter().filter_map(|frame| pair.names[*frame as usize].strip_prefix(KERNEL)).collect()
}

/// True for code without a name.
fn is_place(name: &str) -> bool {
    name.contains("+0x") || name.starts_with('[') && !name.starts_with(KERNEL)
}

/// True for a function of Node.js: it has the line and the column where it begins.
fn is_of_script(name: &str) -> bool {
    let mut parts = name.rsplit(':');
    let are_numbers = [parts.next(), parts.next()].iter().all(|part| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    are_numbers && parts.next().is_some()
}

/// True for functions of libc around a system call or another function.
fn is_wrapper(name: &str) -> bool {
    name.starts_with("__GI_") || name.starts_with("__libc_")
}

/// The group of time at places where a timer was late, and of that which each system call has: it differs
/// between equal servers by how they are woken, and is no function that somebody has changed.
pub(super) fn late(name: &str) -> Option<&'static str> {
    let (_, group) = name.rsplit_once(": ")?;
    [SWITCHES, INTERRUPTS, ENTRY].into_iter().find(|late| group == *late)
}

/// The group of a stack of the kernel, its outermost function first: the system call, or what it does else.
fn of_kernel(functions: &[&str]) -> Option<String> {
    // A name may have a suffix of the compiler's, such as `.isra.0`.
    let base = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let innermost = base(functions.last()?);
    let late = match innermost.as_str() {
        SWITCH => Some(SWITCHES),
        "do_syscall_64" | "entry_SYSCALL_64_after_hwframe" | "entry_SYSCALL_64" => Some(ENTRY),
        innermost => LATE.contains(&innermost).then_some(INTERRUPTS),
    };
    // A compiler may leave the outer function out, as of `do_writev`.
    let first = || functions.iter().skip_while(|name| **name != "do_syscall_64").nth(1);
    let call = functions.iter().find_map(|name| CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)));
    let call = call.or_else(|| first()?.strip_prefix("do_"));
    if let Some(call) = call {
        let name = base(call);
        // Its function has another name than the call.
        let name = if name == "sendfile64" { "sendfile" } else { name.strip_prefix("new").unwrap_or(&name) };
        return Some(late.map_or_else(|| format!("{name}(2)"), |group| format!("{name}(2): {group}")));
    }
    if let Some(group) = late {
        return Some(format!("kernel: {group}"));
    }
    let has = |parts: &[&str]| functions.iter().any(|name| parts.iter().any(|part| name.contains(part)));
    if has(&["page_fault", "user_addr_fault"]) {
        return Some(PAGE_FAULTS.to_owned());
    }
    has(&["sysvec", "irq", "schedule"]).then(|| format!("kernel: {INTERRUPTS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_the_kernel_is_that_of_its_system_call() {
        for (functions, group) in [
            (&["entry_SYSCALL_64", "do_syscall_64", "__x64_sys_write", "tcp_sendmsg"][..], Some("write(2)")),
            (&["do_syscall_64", "__x64_sys_sendto.isra.0", "copy"], Some("sendto(2)")),
            (&["do_syscall_64", "ksys_write", "try_to_wake_up"], Some("write(2)")),
            (&["do_syscall_64", "__x64_sys_sendfile64", "do_splice_direct"], Some("sendfile(2)")),
            (&["do_syscall_64", "do_writev", "tcp_sendmsg"], Some("writev(2)")),
            (
                &["do_syscall_64", "ksys_read", "_raw_spin_unlock_irqrestore"],
                Some("read(2): interrupts and wake-ups"),
            ),
            (&["do_syscall_64", "finish_task_switch.isra.0"], Some("kernel: switches of threads")),
            (&["asm_exc_page_fault", "handle_mm_fault"], Some(PAGE_FAULTS)),
            (&["asm_sysvec_apic_timer_interrupt", "tick"], Some("kernel: interrupts and wake-ups")),
            (&["entry_SYSCALL_64_after_hwframe", "do_syscall_64"], Some("kernel: entries to the kernel")),
            (&["ret_from_fork", "work"], None),
        ] {
            assert_eq!(of_kernel(functions).as_deref(), group, "{functions:?}");
        }
    }
}
