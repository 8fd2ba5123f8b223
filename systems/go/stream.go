package main

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync/atomic"

	"linerate.dev/sdk"
)

// Buffers are held in memory, one for each connection.
const largestWrite = 16 << 20

// Which way the payload goes, in writes and reads of which size.
type setting struct {
	clientWrites, clientReads bool
	content                   *sdk.Content
	size                      int
}

func newSetting(spec *sdk.Spec) (*setting, error) {
	direction := spec.Options["direction"]
	if direction != "client-writes" && direction != "client-reads" && direction != "both" {
		return nil, sdk.BadSpec(`"options.direction" must be client-writes, client-reads or both`)
	}
	if spec.Size < 1 || spec.Size > largestWrite {
		return nil, sdk.BadSpec(`"size" must be 1 to 16777216 bytes`)
	}
	return &setting{direction != "client-reads", direction != "client-writes", sdk.NewContent(spec.Size), spec.Size}, nil
}

// goal is when a direction is over: after so many bytes, or at a point of the clock.
type goal struct{ bytes, until uint64 }

// whole is all that the peer sends or asks for.
func whole(bytes uint64) goal { return goal{bytes, math.MaxUint64} }

func (g goal) reached(at uint64) bool {
	return at >= g.bytes || g.until != math.MaxUint64 && sdk.Now() >= g.until
}

// newGoal is what a client is asked for; `until` is known when the window opens.
func newGoal(spec *sdk.Spec) (goal, error) {
	if spec.Connect == "" || spec.Bytes == 0 && spec.DurationNs == 0 {
		return goal{}, sdk.BadSpec(`a stream needs "connect", and "bytes" or "duration_ns"`)
	}
	if spec.Bytes == 0 {
		return whole(math.MaxUint64), nil
	}
	return whole(spec.Bytes), nil
}

// write sends until the goal is reached: how many bytes there were.
func (s *setting) write(connection net.Conn, limit goal, moved *atomic.Uint64) (at uint64, err error) {
	for !limit.reached(at) {
		length := s.size
		if left := limit.bytes - at; left < uint64(length) {
			length = int(left)
		}
		n, err := connection.Write(s.content.At(at, length))
		if err != nil {
			return at, err
		}
		at += uint64(n)
		moved.Add(1)
	}
	return at, nil
}

// read compares until the goal is reached: how many bytes there were, and how many good ones. The peer's end is no error here.
func (s *setting) read(connection net.Conn, limit goal, moved *atomic.Uint64) (at, good uint64, err error) {
	buffer := make([]byte, s.size)
	for !limit.reached(at) {
		piece := buffer
		if left := limit.bytes - at; left < uint64(len(piece)) {
			piece = piece[:left]
		}
		n, err := connection.Read(piece)
		good += s.content.Good(at, piece[:n])
		at += uint64(n)
		moved.Add(1)
		if err == io.EOF {
			return at, good, nil
		}
		if err != nil {
			return at, good, err
		}
	}
	return at, good, nil
}

func serveStream(spec *sdk.Spec) (*sdk.Done, error) {
	s, err := newSetting(spec)
	if err != nil {
		return nil, err
	}
	return serve(spec, func(connection *net.TCPConn) {
		var moved atomic.Uint64
		var wanted uint64
		if s.clientReads {
			if binary.Read(connection, binary.LittleEndian, &wanted) != nil {
				return
			}
		}
		if !s.clientWrites {
			if _, err := s.write(connection, whole(wanted), &moved); err == nil && connection.CloseWrite() == nil {
				// The client closes when it has all.
				_, _ = connection.Read(make([]byte, 1))
			}
			return
		}
		written := make(chan error, 1)
		go func() {
			_, err := s.write(connection, whole(wanted), &moved)
			written <- err
		}()
		_, good, err := s.read(connection, whole(math.MaxUint64), &moved)
		if err == nil && <-written == nil {
			_ = binary.Write(connection, binary.LittleEndian, good)
		}
	})
}

func stream(spec *sdk.Spec) (*sdk.Done, error) {
	s, err := newSetting(spec)
	if err != nil {
		return nil, err
	}
	limit, err := newGoal(spec)
	if err != nil {
		return nil, err
	}
	if spec.Bytes == 0 && s.clientWrites && s.clientReads {
		return nil, sdk.Unsupported("both directions by time")
	}
	t := &task{spec: spec}
	connections, failures := make([]net.Conn, spec.Connections), make([]string, spec.Connections)
	for i := range connections {
		if connections[i], err = t.dial(); err != nil {
			failures[i] = sdk.ConnectError(err)
		}
	}
	window := t.openWindow()
	if spec.Bytes == 0 {
		limit.until = t.until
	}
	tallies := t.each(func(i int, tally *sdk.Tally) {
		kind := failures[i]
		if kind == "" {
			kind = s.transfer(connections[i].(*net.TCPConn), spec, limit, tally)
		}
		if kind != "" {
			tally.Fail(kind)
		}
	})
	return window.Close(tallies), nil
}

// transfer is one connection's bytes, in each direction that is asked for.
func (s *setting) transfer(connection *net.TCPConn, spec *sdk.Spec, limit goal, tally *sdk.Tally) string {
	defer connection.Close()
	var moved atomic.Uint64
	defer watch(connection, &moved, spec.Timeout())()
	size, out, into := uint64(s.size), whole(0), whole(0)
	if s.clientWrites {
		out = limit
	}
	if s.clientReads {
		into = limit
		if err := binary.Write(connection, binary.LittleEndian, into.bytes); err != nil {
			return sdk.StreamError(err, 0)
		}
	}
	wrote := uint64(0) // read when `written` has told that it stays so
	write := func() (err error) {
		if wrote, err = s.write(connection, out, &moved); err != nil || !s.clientWrites {
			return err
		}
		return connection.CloseWrite()
	}
	written := make(chan error, 1)
	if s.clientReads {
		go func() { written <- write() }()
	} else {
		written <- write()
	}
	got, good, err := s.read(connection, into, &moved)
	if err == nil && !into.reached(got) {
		err = io.ErrUnexpectedEOF
	}
	there := uint64(0)
	if err == nil {
		err = <-written
	}
	if err == nil && s.clientWrites {
		err = binary.Read(connection, binary.LittleEndian, &there)
	}
	if err != nil {
		tally.Streamed(good, good, size)
		return sdk.StreamError(err, 1)
	}
	tally.Streamed(good+there, wrote+got, size)
	return ""
}
