package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"linerate.dev/sdk"
)

// The longest write or message of a counted stream.
const longestWrite = 1 << 20

// channel is what carries rr and counted streams: a socket, TLS, or a WebSocket on either.
type channel interface {
	send(message []byte) error
	// receive is a message, or what one read gave; valid until the next.
	receive() ([]byte, error)
	// echo sends back what comes until the peer is gone.
	echo() error
	// close is the orderly one, and waits for the peer's.
	close()
}

// byteChannel is a socket or TLS.
type byteChannel struct {
	net.Conn
	buffer []byte
}

func (c *byteChannel) send(message []byte) error {
	_, err := c.Write(message)
	return err
}

func (c *byteChannel) receive() ([]byte, error) {
	n, err := c.Read(c.buffer)
	if n > 0 {
		err = nil
	}
	return c.buffer[:n], err
}

func (c *byteChannel) echo() error { return echo(c.Conn) }

func (c *byteChannel) close() {
	if secured, ok := c.Conn.(*tls.Conn); ok && secured.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, secured)
	}
	_ = c.Conn.Close()
}

// counted is what both ends of a counted stream know.
type counted struct {
	clientWrites bool
	size         uint64
	content      *sdk.Content
}

func newCounted(spec *sdk.Spec) (*counted, error) {
	direction := spec.Options["direction"]
	if direction == "both" {
		return nil, sdk.Unsupported("a counted stream both ways")
	}
	if direction != "client-writes" && direction != "client-reads" {
		return nil, sdk.BadSpec(`"options.direction" must be client-writes or client-reads`)
	}
	if spec.Size < 1 || spec.Size > longestWrite {
		return nil, sdk.BadSpec(`"size" must be 1 to 1048576 bytes`)
	}
	// What is compared comes in pieces of a period at most, what is written in pieces of the size.
	longest := sdk.Period
	if spec.Size > longest {
		longest = spec.Size
	}
	return &counted{direction == "client-writes", uint64(spec.Size), sdk.NewContent(longest)}, nil
}

func (c *counted) write(to channel, total uint64, moved *atomic.Uint64) error {
	for at := uint64(0); at < total; at += c.size {
		length := c.size
		if total-at < length {
			length = total - at
		}
		if err := to.send(c.content.At(at, int(length))); err != nil {
			return err
		}
		moved.Add(1)
	}
	return nil
}

// read compares total bytes, of which the first may be there already: how many there were, and how many good ones.
func (c *counted) read(from channel, first []byte, total uint64, moved *atomic.Uint64) (at, good uint64, err error) {
	for piece := first; ; {
		for len(piece) > 0 {
			part := piece
			if len(part) > sdk.Period {
				part = part[:sdk.Period]
			}
			good += c.content.Good(at, part)
			at += uint64(len(part))
			piece = piece[len(part):]
		}
		if at >= total {
			return at, good, nil
		}
		if piece, err = from.receive(); err != nil {
			return at, good, err
		}
		moved.Add(1)
	}
}

// readNumber is a number of 8 bytes, and what came behind it.
func readNumber(from channel) (uint64, []byte, error) {
	var number []byte
	for {
		piece, err := from.receive()
		if err != nil {
			return 0, nil, err
		}
		missing := 8 - len(number)
		if len(piece) >= missing {
			number = append(number, piece[:missing]...)
			return binary.LittleEndian.Uint64(number), piece[missing:], nil
		}
		number = append(number, piece...)
	}
}

func number(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

// converse is a server's end of a connection.
func (c *counted) converse(with channel) error {
	var moved atomic.Uint64
	for {
		total, rest, err := readNumber(with)
		if err != nil {
			return err
		}
		if !c.clientWrites {
			err = c.write(with, total, &moved)
		} else {
			var good uint64
			if _, good, err = c.read(with, rest, total, &moved); err == nil {
				err = with.send(number(good))
			}
		}
		if err != nil {
			return err
		}
	}
}

// serveChannels serves rr and counted streams on any layer.
func serveChannels(spec *sdk.Spec) (*sdk.Done, error) {
	config, err := serverConfig(spec)
	if err != nil {
		return nil, err
	}
	handle := func(with channel) {
		// A client that closes in order is answered in order; one that vanishes ends its connection and nothing else.
		if with.echo() == io.EOF {
			with.close()
		}
	}
	if spec.Workload == "stream" {
		stream, err := newCounted(spec)
		if err != nil {
			return nil, err
		}
		handle = func(with channel) {
			if stream.converse(with) == io.EOF {
				with.close()
			}
		}
	}
	if isWebSocket(spec) {
		return serveWebSockets(spec, config, handle)
	}
	return serve(spec, func(connection *net.TCPConn) {
		if config == nil {
			handle(newByteChannel(connection, spec))
			return
		}
		handle(newByteChannel(tls.Server(connection, config), spec))
	})
}

// driveChannels is the client of rr and of counted streams on any layer.
func driveChannels(spec *sdk.Spec) (*sdk.Done, error) {
	connect, err := connector(spec)
	if err != nil {
		return nil, err
	}
	t, stream, transfers := &task{spec: spec}, (*counted)(nil), 1
	if spec.Workload == "rr" {
		t, err = newTask(spec)
	} else if stream, err = newCounted(spec); err == nil {
		if text, there := spec.Options["transfers"]; there {
			if transfers, err = strconv.Atoi(text); err != nil || transfers < 1 {
				err = sdk.BadSpec(`"options.transfers" must be a number above 0`)
			}
		}
		if spec.Bytes == 0 || spec.Connect == "" {
			err = sdk.BadSpec(`a stream needs "bytes" and "connect"`)
		}
	}
	if err != nil {
		return nil, err
	}
	lines, described := make([]line, spec.Connections), ""
	for i := range lines {
		lines[i] = t.line(connect)
		if lines[i].tls != "" {
			described = lines[i].tls
		}
	}
	window := t.openWindow()
	tallies := t.each(func(i int, tally *sdk.Tally) {
		if lines[i].failure != "" {
			tally.Fail(lines[i].failure)
			return
		}
		var moved atomic.Uint64
		defer sdk.Watch(lines[i].socket, &moved, spec.Timeout())()
		kind := ""
		if stream == nil {
			kind = t.roundTrips(lines[i], t.share(i), tally, &moved)
		}
		for n := 0; stream != nil && n < transfers && kind == ""; n++ {
			kind = stream.transfer(lines[i], spec, tally, &moved)
		}
		if kind != "" {
			tally.Fail(kind)
			_ = lines[i].socket.Close()
			return
		}
		lines[i].close()
	})
	done := window.Close(tallies)
	done.TLS = described
	return done, nil
}

// line is one connection of a client, or why there is none.
type line struct {
	channel
	socket       net.Conn
	tls, failure string
}

func (t *task) line(connect connect) line {
	socket, err := t.dial()
	if err != nil {
		return line{failure: sdk.ConnectError(err)}
	}
	_ = socket.SetDeadline(time.Now().Add(t.spec.Timeout()))
	made, described, failure := connect(socket)
	if failure != "" {
		_ = socket.Close()
		return line{failure: failure}
	}
	_ = socket.SetDeadline(time.Time{})
	return line{made, socket, described, ""}
}

func (t *task) roundTrips(on line, left uint64, tally *sdk.Tally, moved *atomic.Uint64) string {
	for began := sdk.Now(); left > 0 && began < t.until; left-- {
		if err := on.send(t.message); err != nil {
			return sdk.StreamError(err, 0)
		}
		same, received := true, 0
		for received < len(t.message) {
			piece, err := on.receive()
			if err != nil {
				return sdk.StreamError(err, received)
			}
			same = same && bytes.HasPrefix(t.message[received:], piece)
			received += len(piece)
		}
		now := sdk.Now()
		moved.Add(1)
		if same {
			tally.Succeed(began, now, received)
		} else {
			tally.Fail("wrong_content")
		}
		began = now
	}
	return ""
}

func (c *counted) transfer(on line, spec *sdk.Spec, tally *sdk.Tally, moved *atomic.Uint64) string {
	began := sdk.Now()
	if err := on.send(number(spec.Bytes)); err != nil {
		return sdk.StreamError(err, 0)
	}
	var at, good uint64
	var err error
	if c.clientWrites {
		if err = c.write(on, spec.Bytes, moved); err == nil {
			good, _, err = readNumber(on)
		}
	} else {
		at, good, err = c.read(on, nil, spec.Bytes, moved)
	}
	if err != nil {
		return sdk.StreamError(err, int(at))
	}
	tally.Streamed(good, spec.Bytes, c.size)
	tally.Took(sdk.Now() - began)
	return ""
}
