//! The static and the dynamic table (RFC 7541 section 2.3 and appendix A).

use crate::fields::{self, ENTRY};

/// Fields that both ends know, from index 1 on.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The largest dynamic table of a decoder: the default of HTTP/2 at both ends (RFC 9113, section 6.5.2).
pub(in crate::h2) const TABLE_SIZE: usize = 4_096;
const MOST_ENTRIES: usize = TABLE_SIZE / ENTRY;
/// Entries lie whole in a ring. Twice the table has room for the next one, whatever is left at its end.
const RING: usize = 2 * TABLE_SIZE;

/// The index of a field, or of its name alone, in the static table.
pub(super) fn find(name: &str, value: &str) -> (Option<usize>, Option<usize>) {
    let (field, named) = fields::find(&STATIC, name, value);
    (field.map(|at| at + 1), named.map(|at| at + 1))
}

/// Received fields, the newest first.
#[derive(Debug)]
pub(super) struct Table {
    /// As long as what was in use so far, [`RING`] at most: most peers use little.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Where the next entry and its bytes go.
    newest: usize,
    end: usize,
    count: usize,
    size: usize,
    most: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    from: u16,
    name: u16,
    value: u16,
}

impl Entry {
    fn size(self) -> usize {
        usize::from(self.name) + usize::from(self.value) + ENTRY
    }
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            newest: 0,
            end: 0,
            count: 0,
            size: 0,
            most: TABLE_SIZE,
        }
    }

    /// Bytes of memory that are kept.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Name and value at an index of both tables.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if let Some((name, value)) = STATIC.get(index.wrapping_sub(1)) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let age = index.checked_sub(STATIC.len() + 1).filter(|age| *age < self.count)?;
        let Entry { from, name, value } = self.entries[(self.newest + MOST_ENTRIES - 1 - age) % MOST_ENTRIES];
        let bytes = &self.bytes[usize::from(from)..];
        Some((&bytes[..usize::from(name)], &bytes[usize::from(name)..][..usize::from(value)]))
    }

    /// Adds a field, in place of the oldest ones where there is no room. One larger than the table empties
    /// it.
    #[inline]
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY;
        self.evict(self.most.saturating_sub(size));
        if size > self.most {
            return;
        }
        let length = name.len() + value.len();
        let from = if self.end + length > RING { 0 } else { self.end };
        if from + length > self.bytes.len() {
            self.bytes.resize(from + length, 0);
        }
        if self.newest == self.entries.len() {
            self.entries.push(Entry::default());
        }
        let place = &mut self.bytes[from..from + length];
        place[..name.len()].copy_from_slice(name);
        place[name.len()..].copy_from_slice(value);
        self.end = from + length;
        self.entries[self.newest] =
            Entry { from: from as u16, name: name.len() as u16, value: value.len() as u16 };
        self.newest = (self.newest + 1) % MOST_ENTRIES;
        (self.count, self.size) = (self.count + 1, self.size + size);
    }

    /// The sender uses at most this much; false if that is more than it may.
    pub(super) fn resize(&mut self, most: usize) -> bool {
        self.evict(most);
        self.most = most;
        most <= TABLE_SIZE
    }

    #[inline]
    fn evict(&mut self, most: usize) {
        while self.size > most {
            let oldest = (self.newest + MOST_ENTRIES - self.count) % MOST_ENTRIES;
            (self.count, self.size) = (self.count - 1, self.size - self.entries[oldest].size());
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_all_lengths_are_kept_whole_until_they_are_evicted() {
        let mut table = Table::new();
        let mut model: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut random = 1_u64;
        for round in 0..800_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let long = (random >> 33) as usize % if round % 7 == 0 { 4_200 } else { 90 };
            let (name, value) = (round.to_string().into_bytes(), vec![round as u8; long]);
            table.insert(&name, &value);
            model.insert(0, (name, value));
            let mut size = 0;
            model.retain(|(name, value)| {
                size += name.len() + value.len() + ENTRY;
                size <= TABLE_SIZE
            });
            for (at, (name, value)) in model.iter().enumerate() {
                assert_eq!(table.get(62 + at), Some((&name[..], &value[..])));
            }
            assert_eq!(table.get(62 + model.len()), None);
        }
    }

    #[test]
    fn the_static_table_has_what_the_specification_has() {
        let table = Table::new();
        assert_eq!(table.get(1), Some((&b":authority"[..], &b""[..])));
        assert_eq!(table.get(61), Some((&b"www-authenticate"[..], &b""[..])));
        assert_eq!(table.get(0), None);
        assert_eq!(find(":method", "GET"), (Some(2), Some(2)));
        assert_eq!(find(":path", "/a"), (None, Some(4)));
        assert_eq!(find("x-a", ""), (None, None));
    }
}
