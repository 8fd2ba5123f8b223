package sdk

import (
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"sync/atomic"
)

const (
	// Buffers stay in memory, one per connection.
	largestWrite = 16 << 20
	// A number on the wire is 8 bytes little-endian.
	numberSize = 8
)

// Stream is the counted stream of the contract: transfers one after the other, each after its number of bytes.
type Stream struct {
	clientWrites, clientReads bool
	size                      int
	transfers                 int
	content                   *Content
}

// NewStream reads the stream of a spec.
func NewStream(spec *Spec) (*Stream, error) {
	direction := spec.Options["direction"]
	if direction != "client-writes" && direction != "client-reads" && direction != "both" {
		return nil, BadSpec(`"options.direction" must be client-writes, client-reads or both`)
	}
	if spec.Size < 1 || spec.Size > largestWrite {
		return nil, BadSpec(`"size" must be 1 to 16777216 bytes`)
	}
	transfers := 1
	if text, there := spec.Options["transfers"]; there {
		var err error
		if transfers, err = strconv.Atoi(text); err != nil || transfers < 1 {
			return nil, BadSpec(`"options.transfers" must be a number above 0`)
		}
	}
	return &Stream{direction != "client-reads", direction != "client-writes", spec.Size, transfers, NewContent(spec.Size)}, nil
}

// StopCondition returns the condition of a client's spec, which ends each transfer and their sequence.
func (s *Stream) StopCondition(spec *Spec) (StopCondition, error) {
	stop, err := NewStopCondition(spec)
	switch {
	case err != nil || !stop.ByTime():
	case spec.Layer != "tcp":
		err = Unsupported("a stream by time over " + spec.Layer)
	case s.clientWrites && s.clientReads:
		err = Unsupported("both directions by time")
	case s.transfers > 1:
		err = BadSpec("a stream by time is one transfer")
	}
	return stop, err
}

// serve answers transfers until the client closes.
func (s *Stream) serve(channel Channel) error {
	var progress atomic.Uint64
	var rest []byte
	for {
		total, first, err := readNumber(channel, rest)
		if err != nil {
			return err
		}
		stop, written, good := StopAfter(total), make(chan error, 1), uint64(0)
		write := func() {
			_, err := s.write(channel, stop, &progress)
			written <- err
		}
		switch {
		case !s.clientWrites:
			write()
		case s.clientReads:
			go write()
		default:
			written <- nil
		}
		rest = first
		if s.clientWrites {
			// The end of the client's side ends a transfer by time, and no other.
			_, good, rest, err = s.read(channel, first, stop, &progress)
			if err == io.EOF && total == math.MaxUint64 {
				err = nil
			}
		}
		if err == nil {
			err = <-written
		}
		if err == nil && s.clientWrites {
			err = channel.Send(number(good))
		}
		if err != nil {
			return err
		}
	}
}

// Drive makes all transfers of one connection of a client. It returns the kind of failure, or "".
func (s *Stream) Drive(channel Channel, stop StopCondition, tally *Tally, progress *atomic.Uint64) string {
	var rest []byte
	for n := 0; stop.Another(n, s.transfers); n++ {
		var err error
		if rest, err = s.transfer(channel, rest, stop, tally, progress); err != nil {
			return StreamError(err, 1)
		}
	}
	return ""
}

func (s *Stream) transfer(channel Channel, rest []byte, stop StopCondition, tally *Tally, progress *atomic.Uint64) ([]byte, error) {
	began, size := Now(), uint64(s.size)
	if err := channel.Send(number(stop.Bytes)); err != nil {
		return nil, err
	}
	type result struct {
		bytes uint64
		err   error
	}
	written := make(chan result, 1)
	write := func() {
		bytes, err := s.write(channel, stop, progress)
		if half, ok := channel.(interface{ CloseWrite() error }); ok && err == nil && stop.ByTime() {
			err = half.CloseWrite()
		}
		written <- result{bytes, err}
	}
	switch {
	case !s.clientReads:
		write()
	case s.clientWrites:
		go write()
	default:
		written <- result{}
	}
	var read, good, accepted uint64
	var err error
	if s.clientReads {
		read, good, rest, err = s.read(channel, rest, stop, progress)
	}
	var wrote result
	if err == nil {
		wrote = <-written
		err = wrote.err
	}
	if err == nil && s.clientWrites {
		accepted, rest, err = readNumber(channel, rest)
	}
	if err != nil {
		tally.Streamed(good, good, size)
		return nil, err
	}
	tally.Streamed(good+accepted, wrote.bytes+read, size)
	if !stop.ByTime() {
		tally.RecordLatency(Now() - began)
	}
	return rest, nil
}

// write sends content until the stop condition, and returns its length.
func (s *Stream) write(channel Channel, stop StopCondition, progress *atomic.Uint64) (at uint64, err error) {
	for {
		length := stop.Piece(at, s.size)
		if length == 0 {
			return at, nil
		}
		if err := channel.Send(s.content.At(at, length)); err != nil {
			return at, err
		}
		at += uint64(length)
		progress.Add(1)
	}
}

// read compares bytes until the stop condition; the first ones may have been received already. It returns their number,
// the number of good ones, and the bytes behind them.
func (s *Stream) read(channel Channel, first []byte, stop StopCondition, progress *atomic.Uint64) (at, good uint64, rest []byte, err error) {
	for piece := first; ; {
		if left := stop.Bytes - at; uint64(len(piece)) > left {
			piece, rest = piece[:left], piece[left:]
		}
		good += s.content.Good(at, piece)
		at += uint64(len(piece))
		if stop.Reached(at) {
			return at, good, rest, nil
		}
		if piece, err = channel.Receive(); err != nil {
			return at, good, nil, err
		}
		progress.Add(1)
	}
}

// readNumber returns a number and the bytes behind it.
func readNumber(channel Channel, received []byte) (value uint64, rest []byte, err error) {
	bytes := append(make([]byte, 0, numberSize), received...)
	for len(bytes) < numberSize {
		piece, err := channel.Receive()
		if err == io.EOF && len(bytes) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, nil, err
		}
		bytes = append(bytes, piece...)
	}
	return binary.LittleEndian.Uint64(bytes), bytes[numberSize:], nil
}

func number(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }
