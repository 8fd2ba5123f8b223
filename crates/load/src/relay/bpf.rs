//! The bpf(2) commands that a sockmap needs, and its program, assembled by hand.
//!
//! A BPF library would add a loader for object files, and a compiler to build them, for fifteen instructions.

#![allow(unsafe_code, reason = "bpf(2) has no wrapper in libc, and takes a union by pointer")]

use nix::errno::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

// enum bpf_cmd, linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
// enum bpf_map_type, bpf_prog_type, bpf_attach_type.
const MAP_TYPE_SOCKHASH: u32 = 18;
const PROG_TYPE_SK_SKB: u32 = 14;
const SK_SKB_STREAM_VERDICT: u32 = 5;
// enum bpf_func_id.
const FUNC_GET_SOCKET_COOKIE: i32 = 46;
const FUNC_SK_REDIRECT_HASH: i32 = 72;

/// A hash from a 64-bit key to a socket.
#[derive(Debug)]
pub(super) struct SockHash(OwnedFd);

impl SockHash {
    pub(super) fn new(entries: u32) -> nix::Result<Self> {
        // union bpf_attr of BPF_MAP_CREATE; a socket is given as a descriptor and read as a cookie, so 8
        // bytes.
        #[repr(C)]
        struct Attributes {
            map_type: u32,
            key_size: u32,
            value_size: u32,
            max_entries: u32,
        }
        command(
            MAP_CREATE,
            &Attributes { map_type: MAP_TYPE_SOCKHASH, key_size: 8, value_size: 8, max_entries: entries },
        )
        .map(|fd| Self(own(fd)))
    }

    /// Inserts `socket` under `key`. The kernel removes it when it is closed or reset.
    pub(super) fn insert(&self, key: u64, socket: &OwnedFd) -> nix::Result<()> {
        #[repr(C)]
        struct Attributes {
            map: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = socket.as_raw_fd() as u64;
        let attributes = Attributes {
            map: self.0.as_raw_fd() as u32,
            key: std::ptr::from_ref(&key) as u64,
            value: std::ptr::from_ref(&value) as u64,
            flags: 0,
        };
        command(MAP_UPDATE_ELEM, &attributes).map(drop)
    }

    /// From now on the input of a socket of this map is sent by the socket in `targets` under its cookie.
    pub(super) fn redirect_to(&self, targets: &Self) -> nix::Result<()> {
        #[repr(C)]
        struct Attributes {
            target: u32,
            program: u32,
            attach_type: u32,
            flags: u32,
        }
        let program = load(&verdict(targets.0.as_raw_fd()))?;
        let attributes = Attributes {
            target: self.0.as_raw_fd() as u32,
            program: program.as_raw_fd() as u32,
            attach_type: SK_SKB_STREAM_VERDICT,
            flags: 0,
        };
        command(PROG_ATTACH, &attributes).map(drop)
    }
}

/// One instruction, as the kernel reads it (RFC 9669 section 3).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Instruction {
    opcode: u8,
    /// Target register in the low half, source register in the high.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// `if (skb->len == 0) return SK_DROP; u64 key = bpf_get_socket_cookie(skb);
/// return bpf_sk_redirect_hash(skb, &targets, &key, 0);`: to the output of the other socket.
///
/// Without another socket the data is dropped, so a socket gets this program only when its target is in the
/// map. A bare FIN is a piece of length 0; if it is redirected, the kernel treats it as a failed send and
/// sets `EPIPE` on the target (`sk_psock_backlog()`). To drop it loses nothing: the socket has already
/// recorded the end of input.
fn verdict(targets: i32) -> [Instruction; 15] {
    const fn op(opcode: u8, target: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
        Instruction { opcode, registers: source << 4 | target, offset, immediate }
    }
    const MOVE: u8 = 0xbf;
    const MOVE_IMMEDIATE: u8 = 0xb7;
    const ADD_IMMEDIATE: u8 = 0x07;
    const STORE_64: u8 = 0x7b;
    const LOAD_64_IMMEDIATE: u8 = 0x18;
    const LOAD_32: u8 = 0x61;
    const JUMP_IF_NOT_IMMEDIATE: u8 = 0x55;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    // The immediate is the descriptor of a map.
    const PSEUDO_MAP_FD: u8 = 1;
    const SLOT: i16 = -8;
    [
        op(LOAD_32, 2, 1, 0, 0), // skb->len, the first field of struct __sk_buff
        op(JUMP_IF_NOT_IMMEDIATE, 2, 0, 2, 0),
        op(MOVE_IMMEDIATE, 0, 0, 0, 0), // SK_DROP
        op(EXIT, 0, 0, 0, 0),
        op(MOVE, 6, 1, 0, 0), // r6 = skb, which calls preserve
        op(CALL, 0, 0, 0, FUNC_GET_SOCKET_COOKIE),
        op(STORE_64, 10, 0, SLOT, 0), // on the stack: the key
        op(MOVE, 1, 6, 0, 0),
        op(LOAD_64_IMMEDIATE, 2, PSEUDO_MAP_FD, 0, targets),
        op(0, 0, 0, 0, 0), // the upper half of the immediate
        op(MOVE, 3, 10, 0, 0),
        op(ADD_IMMEDIATE, 3, 0, 0, SLOT as i32),
        op(MOVE_IMMEDIATE, 4, 0, 0, 0), // no flags: to the target's output
        op(CALL, 0, 0, 0, FUNC_SK_REDIRECT_HASH),
        op(EXIT, 0, 0, 0, 0),
    ]
}

fn load(body: &[Instruction]) -> nix::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        prog_type: u32,
        count: u32,
        instructions: u64,
        licence: u64,
    }
    let attributes = Attributes {
        prog_type: PROG_TYPE_SK_SKB,
        count: body.len() as u32,
        instructions: body.as_ptr() as u64,
        licence: c"MIT".as_ptr() as u64,
    };
    command(PROG_LOAD, &attributes).map(own)
}

/// `attributes` is the part of `union bpf_attr` that the command reads; the kernel takes the rest as zero.
fn command<T>(command: libc::c_int, attributes: &T) -> nix::Result<i32> {
    // SAFETY: bpf(2) reads size_of::<T>() bytes at `attributes`, which is borrowed for the call. The pointers
    // in it are from borrows that outlive the call, and none of these commands writes through them.
    let outcome =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    Errno::result(outcome).map(|fd| fd as i32)
}

fn own(fd: i32) -> OwnedFd {
    // SAFETY: the callers, BPF_MAP_CREATE and BPF_PROG_LOAD, have just created this descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
