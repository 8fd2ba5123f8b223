package main

import (
	"bytes"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"linerate.dev/sdk"
)

// Above it a client that sends all before it reads could wait for an echo server that waits for it.
const largestMessage = 65_536

// A client's task: the message, how many operations, until when.
type task struct {
	spec    *sdk.Spec
	message []byte
	sources atomic.Uint64
	until   uint64
}

func newTask(spec *sdk.Spec) (*task, error) {
	if spec.Size < 1 || spec.Size > largestMessage {
		return nil, sdk.BadSpec(`"size" must be 1 to 65536 bytes`)
	}
	if spec.Operations == 0 && spec.DurationNs == 0 {
		return nil, sdk.BadSpec(`a client needs "operations" or "duration_ns"`)
	}
	if spec.Connect == "" {
		return nil, sdk.BadSpec(`"connect" is missing`)
	}
	if spec.Operations == 0 {
		spec.Operations = math.MaxUint64
	}
	return &task{spec: spec, message: sdk.Page(spec.Size)}, nil
}

// dial connects, from each local address in turn.
func (t *task) dial() (net.Conn, error) { return t.dialAs("tcp") }

// dialAs is the same for "tcp" or "udp".
func (t *task) dialAs(network string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: t.spec.Timeout()}
	if len(t.spec.Sources) > 0 {
		turn := (t.sources.Add(1) - 1) % uint64(len(t.spec.Sources))
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(t.spec.Sources[turn])}
		if network == "udp" {
			dialer.LocalAddr = &net.UDPAddr{IP: net.ParseIP(t.spec.Sources[turn])}
		}
	}
	return dialer.Dial(network, t.spec.Connect)
}

func (t *task) openWindow() sdk.Window {
	window := sdk.OpenWindow()
	t.until = math.MaxUint64
	if t.spec.DurationNs > 0 {
		t.until = window.Start() + t.spec.DurationNs
	}
	return window
}

// share is the part of the operations that one of the connections has.
func (t *task) share(index int) uint64 {
	if t.spec.Operations == math.MaxUint64 {
		return math.MaxUint64
	}
	parts := uint64(t.spec.Connections)
	share := t.spec.Operations / parts
	if uint64(index) < t.spec.Operations%parts {
		share++
	}
	return share
}

// each runs work in a goroutine for each connection, and gathers what they counted.
func (t *task) each(work func(index int, tally *sdk.Tally)) []*sdk.Tally {
	tallies := make([]*sdk.Tally, t.spec.Connections)
	var group sync.WaitGroup
	for i := range tallies {
		tallies[i] = &sdk.Tally{}
		group.Add(1)
		go func(i int) {
			defer group.Done()
			work(i, tallies[i])
		}(i)
	}
	group.Wait()
	return tallies
}

// exchange sends the message and waits until all of it is back; the kind of failure, or nothing.
func (t *task) exchange(connection net.Conn, buffer []byte) string {
	if _, err := connection.Write(t.message); err != nil {
		return sdk.StreamError(err, 0)
	}
	return t.back(connection, buffer)
}

func (t *task) back(connection net.Conn, buffer []byte) string {
	if n, err := io.ReadFull(connection, buffer); err != nil {
		return sdk.StreamError(err, n)
	}
	if !bytes.Equal(buffer, t.message) {
		return "wrong_content"
	}
	return ""
}

func rr(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	connections := make([]net.Conn, spec.Connections)
	for i := range connections {
		// What fails here fails again in the first operation, and is counted there.
		if connections[i], err = t.dial(); err != nil {
			connections[i] = nil
		}
	}
	window := t.openWindow()
	tallies := t.each(func(i int, tally *sdk.Tally) { t.pair(connections[i], t.share(i), tally) })
	return window.Close(tallies), nil
}

// pair is one connection's operations. When one fails, the next begins on a new connection.
func (t *task) pair(connection net.Conn, left uint64, tally *sdk.Tally) {
	buffer := make([]byte, len(t.message))
	for left > 0 && sdk.Now() < t.until {
		if connection == nil {
			var err error
			if connection, err = t.dial(); err != nil {
				connection = nil
				left--
				tally.Fail(sdk.ConnectError(err))
				time.Sleep(time.Millisecond)
				continue
			}
		}
		var moved atomic.Uint64
		stop := sdk.Watch(connection, &moved, t.spec.Timeout())
		for began := sdk.Now(); left > 0 && began < t.until; {
			left--
			if kind := t.exchange(connection, buffer); kind != "" {
				tally.Fail(kind)
				break
			}
			now := sdk.Now()
			tally.Succeed(began, now, len(buffer))
			began = now
			moved.Add(1)
		}
		stop()
		_ = connection.Close()
		connection = nil
	}
}

func churn(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	window := t.openWindow()
	tallies := t.each(func(i int, tally *sdk.Tally) {
		buffer := make([]byte, len(t.message))
		for left := t.share(i); left > 0; left-- {
			began := sdk.Now()
			if began >= t.until {
				return
			}
			connection, err := t.dial()
			if err != nil {
				tally.Fail(sdk.ConnectError(err))
				time.Sleep(time.Millisecond)
				continue
			}
			tally.Connected(sdk.Now() - began)
			_ = connection.SetDeadline(time.Now().Add(t.spec.Timeout()))
			if kind := t.exchange(connection, buffer); kind != "" {
				tally.Fail(kind)
			} else {
				tally.Succeed(began, sdk.Now(), len(buffer))
			}
			_ = connection.Close()
		}
	})
	return window.Close(tallies), nil
}

// fanout is one goroutine that writes to all and reads from all: a write to a socket with room does not wait.
func fanout(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	connections, _ := t.dialAll()
	window := t.openWindow()
	tally, buffer := &sdk.Tally{}, make([]byte, len(t.message))
	began := window.Start()
	for left := spec.Operations; left > 0 && began < t.until; left-- {
		kind := ""
		if connections == nil {
			connections, kind = t.dialAll()
		}
		if kind == "" {
			kind = t.round(connections, buffer)
		}
		now := sdk.Now()
		if kind == "" {
			tally.Succeed(began, now, spec.Connections*len(t.message))
		} else {
			tally.Fail(kind)
			closeAll(connections)
			connections = nil
			time.Sleep(time.Millisecond)
			now = sdk.Now()
		}
		began = now
	}
	closeAll(connections)
	return window.Close([]*sdk.Tally{tally}), nil
}

func (t *task) round(connections []net.Conn, buffer []byte) string {
	deadline := time.Now().Add(t.spec.Timeout())
	for _, connection := range connections {
		_ = connection.SetDeadline(deadline)
		if _, err := connection.Write(t.message); err != nil {
			return sdk.StreamError(err, 0)
		}
	}
	for _, connection := range connections {
		if kind := t.back(connection, buffer); kind != "" {
			return kind
		}
	}
	return ""
}

// dialAll opens every connection, or tells the kind of failure.
func (t *task) dialAll() ([]net.Conn, string) {
	var connections []net.Conn
	for range make([]struct{}, t.spec.Connections) {
		connection, err := t.dial()
		if err != nil {
			closeAll(connections)
			return nil, sdk.ConnectError(err)
		}
		connections = append(connections, connection)
	}
	return connections, ""
}

func closeAll(connections []net.Conn) {
	for _, connection := range connections {
		_ = connection.Close()
	}
}
