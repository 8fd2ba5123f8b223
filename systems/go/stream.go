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

// write sends until the goal is reached: how many bytes there were.
func (s *setting) write(connection net.Conn, limit sdk.Goal, moved *atomic.Uint64) (at uint64, err error) {
	for {
		length := limit.Piece(at, s.size)
		if length == 0 {
			return at, nil
		}
		n, err := connection.Write(s.content.At(at, length))
		if err != nil {
			return at, err
		}
		at += uint64(n)
		moved.Add(1)
	}
}

// read compares until the goal is reached: how many bytes there were, and how many good ones. The peer's end is no error here.
func (s *setting) read(connection net.Conn, limit sdk.Goal, moved *atomic.Uint64) (at, good uint64, err error) {
	buffer := make([]byte, s.size)
	for {
		length := limit.Piece(at, s.size)
		if length == 0 {
			return at, good, nil
		}
		piece := buffer[:length]
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
			if _, err := s.write(connection, sdk.Whole(wanted), &moved); err == nil && connection.CloseWrite() == nil {
				// The client closes when it has all.
				_, _ = connection.Read(make([]byte, 1))
			}
			return
		}
		written := make(chan error, 1)
		go func() {
			_, err := s.write(connection, sdk.Whole(wanted), &moved)
			written <- err
		}()
		_, good, err := s.read(connection, sdk.Whole(math.MaxUint64), &moved)
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
	limit, err := sdk.NewGoal(spec)
	if err != nil {
		return nil, err
	}
	if limit.ByTime() && s.clientWrites && s.clientReads {
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
	limit.Start(window)
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
func (s *setting) transfer(connection *net.TCPConn, spec *sdk.Spec, limit sdk.Goal, tally *sdk.Tally) string {
	defer connection.Close()
	var moved atomic.Uint64
	defer sdk.Watch(connection, &moved, spec.Timeout())()
	size, out, into := uint64(s.size), sdk.Whole(0), sdk.Whole(0)
	if s.clientWrites {
		out = limit
	}
	if s.clientReads {
		into = limit
		if err := binary.Write(connection, binary.LittleEndian, into.Bytes); err != nil {
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
	if err == nil && !into.Reached(got) {
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
