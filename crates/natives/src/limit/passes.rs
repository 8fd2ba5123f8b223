//! `stream` without sockets, in one process on one CPU: what is left is what has to be done to the bytes.
//!
//! | limit | is left of | what |
//! |---|---|---|
//! | `copies` | `tcp` | the copy from the writer to the kernel, and the one from the kernel to the reader |
//! | `aead` | `tls` | AES-128-GCM: records of 16 KiB, sealed and opened where they lie, by ring; comparison |
//! | `mask` | `websocket` | the writer's masking pass; the reader unmasks while it compares |
//!
//! The buffer in between is as large as a write: a kernel that needs more is slower, not faster.

use linerate_contract::{Bytes, Done, ErrorKind, Nanos, Spec, clock, page};
use linerate_load::Refusal;
use linerate_load::layer::wire::tls::RING_VERSION;
use linerate_load::listener::Listener;
use linerate_load::process::Signals;
use linerate_proto::record::{self, Kind};
use linerate_proto::websocket::mask::{Key, copy, matches};
use std::hint::black_box;

/// The contract's: content repeats with this period.
const PERIOD: usize = 65_536;
/// As the engine's own stream.
const LARGEST_WRITE: u64 = 16 << 20;

const PAGE: usize = 4096;
/// Between the places of two buffers in their pages.
const APART: usize = PAGE / 4;
/// Copies between two readings of the clock, which takes as long as copying 500 bytes.
const PIECES_PER_LOOK: u64 = 16;

/// There is nothing to serve, but a trial has a server: this one is there, and that is all.
pub(super) fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let signals = Signals::claim()?;
    let (_listener, address) = Listener::bind(address, false)?;
    signals.serve(address);
    Ok(())
}

/// The copies. Nothing is compared, since some systems do not: iperf.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn copies(spec: &Spec) -> Result<Done, Refusal> {
    let size = spec.size.min(LARGEST_WRITE) as usize;
    let mut room = vec![0; 2 * (size + PAGE + 2 * APART)];
    let (kernel, reader) = places(&mut room, size);
    let done = measure(spec, |piece| {
        // black_box: the compiler must not see through the copy in the middle.
        black_box(&mut *kernel)[..piece.len()].copy_from_slice(piece);
        black_box(&mut *reader)[..piece.len()].copy_from_slice(&black_box(&*kernel)[..piece.len()]);
        black_box(&*reader);
        true
    })?;
    Ok(Done { verified: 0, ..done })
}

/// Two buffers of `size`, a quarter and a half of a page after the start of one. Where a destination begins
/// a few bytes after its source, counted from the starts of their pages, `rep movsb` of AMD's Zen 3 copies at
/// less than a tenth of its rate, and memcpy(3) uses it
/// (<https://lunnova.dev/articles/ryzen-slow-short-rep-mov/>).
fn places(room: &mut [u8], size: usize) -> (&mut [u8], &mut [u8]) {
    let half = room.len() / 2;
    let (kernel, reader) = room.split_at_mut(half);
    let place = |half: &mut [u8], offset: usize| half.as_ptr().align_offset(PAGE) + offset;
    let (first, second) = (place(kernel, APART), place(reader, 2 * APART));
    (&mut kernel[first..][..size], &mut reader[second..][..size])
}

/// Sealing and opening.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn aead(spec: &Spec) -> Result<Done, Refusal> {
    let (mut sealer, mut opener) = record::pair([7; 16]);
    let mut room = vec![0; record::LARGEST_PLAIN + record::OVERHEAD];
    let done = measure(spec, |piece| {
        piece.chunks(record::LARGEST_PLAIN).all(|plain| {
            let length = sealer.seal_bytes(&mut room, Kind::Data, plain);
            opener.open(&mut room[..length]).is_ok_and(|(_, opened)| *opened == *plain)
        })
    })?;
    // Records of this suite, without a handshake.
    let tls = format!("TLSv1.3 TLS_AES_128_GCM_SHA256 ring {RING_VERSION}");
    Ok(Done { tls: Some(tls), ..done })
}

/// Masking, and comparing with what was masked.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn mask(spec: &Spec) -> Result<Done, Refusal> {
    let mut masked = vec![0; spec.size.min(LARGEST_WRITE) as usize];
    let key = Key::new([0x37, 0xfa, 0x21, 0x3d]);
    measure(spec, |piece| {
        let masked = &mut masked[..piece.len()];
        copy(masked, piece, key);
        matches(black_box(masked), key, piece)
    })
}

/// Sends the content of `spec` through `pass`, which returns whether a piece came out as it should. With
/// `bytes` and a duration, transfers follow until the time is over.
fn measure(spec: &Spec, mut pass: impl FnMut(&[u8]) -> bool) -> Result<Done, Refusal> {
    let ways = super::ways(spec)?;
    let bytes = spec.bytes.or_else(|| spec.duration_ns.map(|_| u64::MAX)).filter(|n| *n > 0);
    let Some(bytes) = bytes.filter(|_| (1..=LARGEST_WRITE).contains(&spec.size)) else {
        return Err(Refusal::BadSpec(format!(
            "needs \"bytes\" above 0 or \"duration_ns\", and \"size\" of 1 to {LARGEST_WRITE}"
        )));
    };
    let (is_by_time, repeats) = (spec.bytes.is_none(), super::repeats(spec));
    let transfer = bytes.saturating_mul(u64::from(spec.connections) * ways);
    let mut all = transfer.saturating_mul(if repeats { 1 } else { spec.transfers()? });
    let size = spec.size as usize;
    let content: Vec<u8> = page(PERIOD).into_iter().cycle().take(PERIOD + size).collect();
    let (mut at, mut good, mut pieces) = (0_u64, 0_u64, 0_u64);
    let cpu = clock::process_cpu();
    let start_ns = clock::now();
    let end = start_ns + spec.duration_ns.unwrap_or(Nanos(u64::MAX));
    while at < all {
        pieces += 1;
        if is_by_time && pieces % PIECES_PER_LOOK == 0 && clock::now() >= end {
            all = at;
            break;
        }
        let length = (all - at).min(spec.size) as usize;
        let start = (at % PERIOD as u64) as usize;
        if pass(&content[start..start + length]) {
            good += length as u64;
        }
        at += length as u64;
        if at == all && repeats && clock::now() < end {
            all += transfer;
        }
    }
    let end_ns = clock::now();
    let mut done = Done {
        operations: good.div_ceil(spec.size),
        bytes: Bytes(good),
        start_ns,
        end_ns,
        cpu_ns: clock::process_cpu().since(cpu),
        verified: good,
        datagrams: super::datagrams(spec, good.div_ceil(spec.size)),
        ..Done::default()
    };
    done.errors.add(ErrorKind::WrongContent, (all - good).div_ceil(spec.size));
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffers_begin_apart_in_their_pages() {
        for size in [1, 63_488, PERIOD] {
            let mut room = vec![0; 2 * (size + PAGE + 2 * APART)];
            let (kernel, reader) = places(&mut room, size);
            let in_page = |buffer: &[u8]| buffer.as_ptr() as usize % PAGE;
            assert_eq!([in_page(kernel), in_page(reader)], [APART, 2 * APART], "{size}");
            assert_eq!([kernel.len(), reader.len()], [size; 2]);
        }
    }
}
