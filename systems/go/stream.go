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

func (s *setting) write(connection net.Conn, total uint64, moved *atomic.Uint64) error {
	for at := uint64(0); at < total; {
		length := s.size
		if left := total - at; left < uint64(length) {
			length = int(left)
		}
		n, err := connection.Write(s.content.At(at, length))
		if err != nil {
			return err
		}
		at += uint64(n)
		moved.Add(1)
	}
	return nil
}

// read compares up to total bytes: how many there were, and how many good ones. The peer's end is no error here.
func (s *setting) read(connection net.Conn, total uint64, moved *atomic.Uint64) (at, good uint64, err error) {
	buffer := make([]byte, s.size)
	for at < total {
		piece := buffer
		if left := total - at; left < uint64(len(piece)) {
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
			if s.write(connection, wanted, &moved) == nil && connection.CloseWrite() == nil {
				// The client closes when it has all.
				_, _ = connection.Read(make([]byte, 1))
			}
			return
		}
		written := make(chan error, 1)
		go func() { written <- s.write(connection, wanted, &moved) }()
		_, good, err := s.read(connection, math.MaxUint64, &moved)
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
	if spec.Bytes == 0 || spec.Connect == "" {
		return nil, sdk.BadSpec(`a stream needs "bytes" and "connect"`)
	}
	t := &task{spec: spec}
	connections, failures := make([]net.Conn, spec.Connections), make([]string, spec.Connections)
	for i := range connections {
		if connections[i], err = t.dial(); err != nil {
			failures[i] = sdk.ConnectError(err)
		}
	}
	window := t.openWindow()
	tallies := t.each(func(i int, tally *sdk.Tally) {
		kind := failures[i]
		if kind == "" {
			kind = s.transfer(connections[i].(*net.TCPConn), spec, tally)
		}
		if kind != "" {
			tally.Fail(kind)
		}
	})
	return window.Close(tallies), nil
}

// transfer is one connection's bytes, in each direction that is asked for.
func (s *setting) transfer(connection *net.TCPConn, spec *sdk.Spec, tally *sdk.Tally) string {
	defer connection.Close()
	var moved atomic.Uint64
	defer watch(connection, &moved, spec.Timeout())()
	size, out, into := uint64(s.size), uint64(0), uint64(0)
	if s.clientWrites {
		out = spec.Bytes
	}
	if s.clientReads {
		into = spec.Bytes
		if err := binary.Write(connection, binary.LittleEndian, into); err != nil {
			return sdk.StreamError(err, 0)
		}
	}
	write := func() error {
		if err := s.write(connection, out, &moved); err != nil || out == 0 {
			return err
		}
		return connection.CloseWrite()
	}
	written := make(chan error, 1)
	if into > 0 {
		go func() { written <- write() }()
	} else {
		written <- write()
	}
	got, good, err := s.read(connection, into, &moved)
	if err == nil && got < into {
		err = io.ErrUnexpectedEOF
	}
	there := uint64(0)
	if err == nil {
		err = <-written
	}
	if err == nil && out > 0 {
		err = binary.Read(connection, binary.LittleEndian, &there)
	}
	if err != nil {
		tally.Streamed(good, good, size)
		return sdk.StreamError(err, 1)
	}
	tally.Streamed(good+there, out+into, size)
	return ""
}
