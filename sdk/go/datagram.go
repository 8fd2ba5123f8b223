package sdk

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// Datagrams of a `stream` over UDP (sdk/CONTRACT.md): a sequence number of 8 bytes, then content. Control datagrams have the
// highest numbers.
const (
	DatagramHeader   = 8
	SmallestDatagram = 64
	LargestDatagram  = 65_507

	DatagramHello   = ^uint64(0)
	DatagramEnd     = ^uint64(1)
	DatagramReport  = ^uint64(2)
	DatagramWelcome = ^uint64(3)
	firstControl    = ^uint64(15)
	// The receiver remembers this many of the last sequence numbers.
	datagramWindow = 65_536
)

// Control encodes a control datagram: its kind and numbers.
func Control(kind uint64, numbers ...uint64) []byte {
	bytes := binary.LittleEndian.AppendUint64(nil, kind)
	for _, number := range numbers {
		bytes = binary.LittleEndian.AppendUint64(bytes, number)
	}
	return bytes
}

// ParseDatagram returns the sequence number of a datagram, which is the kind of a control datagram; false if it is malformed.
func ParseDatagram(bytes []byte) (sequence uint64, ok bool) {
	if len(bytes) < DatagramHeader {
		return 0, false
	}
	sequence = binary.LittleEndian.Uint64(bytes)
	switch sequence {
	case DatagramHello, DatagramWelcome, DatagramEnd:
		return sequence, len(bytes) == 16
	case DatagramReport:
		return sequence, len(bytes) == 64
	}
	return sequence, sequence < firstControl
}

// Report is the server's result of one flow.
type Report struct {
	Received, Bytes, Reordered, Duplicates, Damaged uint64
	// CLOCK_MONOTONIC of the first and last payload datagram; 0 without one.
	FirstNs, LastNs uint64
}

// IsPossible reports whether a path can cause it with sent datagrams of size bytes, the last of which was sent within elapsed
// nanoseconds: up to 64 copies of each, and clocks that differ by up to 1 %.
func (r Report) IsPossible(sent, size, elapsed uint64) bool {
	return r.Received <= sent && r.Bytes == r.Received*size && r.Reordered <= r.Received && r.Duplicates <= 64*sent &&
		r.Damaged <= 64*sent && r.FirstNs <= r.LastNs && r.LastNs-r.FirstNs <= elapsed+elapsed/100
}

// Control encodes the report as a datagram.
func (r Report) Control() []byte {
	return Control(DatagramReport, r.Received, r.Bytes, r.Reordered, r.Duplicates, r.Damaged, r.FirstNs, r.LastNs)
}

// ParseReport decodes a datagram whose kind is DatagramReport.
func ParseReport(bytes []byte) Report {
	at := func(index int) uint64 { return binary.LittleEndian.Uint64(bytes[8*index:]) }
	return Report{at(1), at(2), at(3), at(4), at(5), at(6), at(7)}
}

// Flow counts the datagrams of one flow at the receiver.
type Flow struct {
	Report
	next uint64
	seen [datagramWindow / 64]uint64
}

// Good counts an undamaged payload datagram of this many bytes.
func (f *Flow) Good(sequence uint64, bytes int, now uint64) {
	word, bit := sequence%datagramWindow/64, uint64(1)<<(sequence%64)
	switch {
	case sequence >= f.next:
		f.forget(sequence)
		f.next = sequence + 1
	case f.next-sequence <= datagramWindow && f.seen[word]&bit != 0:
		f.Duplicates++
		return
	default:
		f.Reordered++
	}
	if f.next-sequence <= datagramWindow {
		f.seen[word] |= bit
	}
	if f.Received == 0 {
		f.FirstNs = now
	}
	f.LastNs = now
	f.Received++
	f.Bytes += uint64(bytes)
}

// Damage counts a datagram of another length or content.
func (f *Flow) Damage() { f.Damaged++ }

// forget clears the bits of skipped numbers, which may be set from a window earlier.
func (f *Flow) forget(sequence uint64) {
	if sequence-f.next >= datagramWindow {
		f.seen = [datagramWindow / 64]uint64{}
		return
	}
	for skipped := f.next; skipped < sequence; skipped++ {
		f.seen[skipped%datagramWindow/64] &^= 1 << (skipped % 64)
	}
}

// NewDatagram returns a datagram of the spec; its sequence number is still to be written.
func NewDatagram(spec *Spec) ([]byte, error) {
	if spec.Size < SmallestDatagram || spec.Size > LargestDatagram {
		return nil, BadSpec(`"size" must be 64 to 65507 bytes`)
	}
	switch spec.Options["direction"] {
	case "client-writes":
	case "client-reads", "both":
		return nil, Unsupported("datagrams from the server")
	default:
		return nil, BadSpec(`"options.direction" must be client-writes`)
	}
	if mode := spec.Options["mode"]; mode != "" && mode != "single" {
		return nil, Unsupported("mode " + mode + ": one datagram per call")
	}
	return Page(spec.Size), nil
}

// Receiver is the server of all flows of a stream, for one goroutine: it compares, counts and reports.
type Receiver struct {
	expected []byte
	flows    map[netip.AddrPort]*Flow
}

// NewReceiver expects datagrams like this one, with any sequence number.
func NewReceiver(expected []byte) *Receiver {
	return &Receiver{expected, map[netip.AddrPort]*Flow{}}
}

// Answer returns the answer to a datagram of a peer; nil if there is none.
func (r *Receiver) Answer(from netip.AddrPort, datagram []byte) []byte {
	sequence, ok := ParseDatagram(datagram)
	// What a server sends is answered by none: two servers never answer each other.
	if !ok || sequence == DatagramReport || sequence == DatagramWelcome {
		return nil
	}
	flow := r.flows[from]
	if flow == nil || sequence == DatagramHello {
		flow = &Flow{}
		r.flows[from] = flow
	}
	switch {
	case sequence == DatagramHello:
		return Control(DatagramWelcome, 0)
	case sequence == DatagramEnd:
		return flow.Report.Control()
	case len(datagram) == len(r.expected) && bytes.Equal(datagram[DatagramHeader:], r.expected[DatagramHeader:]):
		flow.Good(sequence, len(datagram), Now())
	default:
		flow.Damage()
	}
	return nil
}

// Datagrams counts the datagrams of all flows.
type Datagrams struct {
	Sent       uint64 `json:"sent"`
	Received   uint64 `json:"received"`
	Lost       uint64 `json:"lost"`
	Reordered  uint64 `json:"reordered"`
	Duplicates uint64 `json:"duplicates"`
	Damaged    uint64 `json:"damaged"`
}

func (d *Datagrams) add(other Datagrams) {
	d.Sent += other.Sent
	d.Received += other.Received
	d.Lost += other.Lost
	d.Reordered += other.Reordered
	d.Duplicates += other.Duplicates
	d.Damaged += other.Damaged
}

// Flowed counts a flow of datagrams of size: the number sent, when the last one was, and the server's report.
func (t *Tally) Flowed(sent, stopped uint64, report Report, size int) {
	lost := uint64(0)
	if report.Received < sent {
		lost = sent - report.Received
	}
	if t.datagrams == nil {
		t.datagrams = &Datagrams{}
	}
	t.datagrams.add(Datagrams{sent, report.Received, lost, report.Reordered, report.Duplicates, report.Damaged})
	t.operations += report.Received
	t.bytes += report.Bytes
	t.verified += report.Received * uint64(size-DatagramHeader)
	if stopped > t.end {
		t.end = stopped
	}
	if report.LastNs > report.FirstNs+t.flow {
		t.flow = report.LastNs - report.FirstNs
	}
}
