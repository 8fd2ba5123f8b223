package main

import (
	"bytes"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"linerate.dev/sdk"
)

const (
	// A client that sends a larger message before it reads can deadlock with an echo server: both wait on full socket buffers.
	largestMessage = 65_536
	// Wait after a failed operation, so that a dead port does not use a CPU.
	retry = time.Millisecond
	// Until both ends of all connections have their goroutine.
	settle = time.Millisecond
)

// task is a client's task.
type task struct {
	spec    *sdk.Spec
	message []byte
	connect connect
	dialed  atomic.Uint64
	window  *sdk.Window
}

// newTask reads the task of rr, crr and fanout.
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
	connect, err := connector(spec)
	return &task{spec: spec, message: sdk.Page(spec.Size), connect: connect}, err
}

// dial opens a socket of "tcp" or "udp", from each local address in turn.
func (t *task) dial(network string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: t.spec.Timeout()}
	if source := t.spec.Source(int(t.dialed.Add(1) - 1)); source != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: source}
		if network == "udp" {
			dialer.LocalAddr = &net.UDPAddr{IP: source}
		}
	}
	return dialer.Dial(network, t.spec.Connect)
}

func (t *task) openWindow() *sdk.Window {
	t.window = sdk.OpenWindow(t.spec)
	return t.window
}

// share returns one connection's part of the operations.
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

// each runs work in a goroutine for each connection, and returns their tallies.
func (t *task) each(work func(index int, tally *sdk.Tally)) []*sdk.Tally {
	tallies := make([]*sdk.Tally, t.spec.Connections)
	var group sync.WaitGroup
	for i := range tallies {
		tallies[i] = t.window.NewTally()
		group.Add(1)
		go func(i int) {
			defer group.Done()
			work(i, tallies[i])
		}(i)
	}
	group.Wait()
	return tallies
}

// line is one connection of a client, or the kind of failure.
type line struct {
	channel
	socket       net.Conn
	tls, failure string
}

func (t *task) open() line {
	socket, err := t.dial("tcp")
	if err != nil {
		return line{failure: sdk.ConnectError(err)}
	}
	made, described, failure := t.connect(socket)
	if failure != "" {
		_ = socket.Close()
		return line{failure: failure}
	}
	return line{made, socket, described, ""}
}

// openAll opens every connection of the client, and describes their TLS.
func (t *task) openAll() (lines []line, described string) {
	lines = make([]line, t.spec.Connections)
	for i := range lines {
		lines[i] = t.open()
		if lines[i].tls != "" {
			described = lines[i].tls
		}
	}
	if t.spec.OneLoop() {
		time.Sleep(settle)
	}
	return lines, described
}

// exchange sends the message and receives it back, or fetches the page; it returns the kind of failure, or "".
func (t *task) exchange(on sdk.Channel) string {
	if t.spec.Layer == "http" {
		return fetch(on, t.message)
	}
	if err := on.Send(t.message); err != nil {
		return sdk.StreamError(err, 0)
	}
	return t.receive(on)
}

func (t *task) receive(on sdk.Channel) string {
	same, received := true, 0
	for received < len(t.message) {
		piece, err := on.Receive()
		if err != nil {
			return sdk.StreamError(err, received)
		}
		same = same && bytes.HasPrefix(t.message[received:], piece)
		received += len(piece)
	}
	if !same {
		return "wrong_content"
	}
	return ""
}

func rr(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	lines, described := t.openAll()
	window := t.openWindow()
	done := window.Close(t.each(func(i int, tally *sdk.Tally) { t.exchangeAll(lines[i], t.share(i), tally) }))
	done.TLS = described
	return done, nil
}

// exchangeAll makes one connection's operations. After a failure the next one has a new connection.
func (t *task) exchangeAll(on line, left uint64, tally *sdk.Tally) {
	for left > 0 && !t.window.IsOver(sdk.Now()) {
		if on.failure != "" {
			left--
			tally.Fail(on.failure)
			time.Sleep(retry)
			on = t.open()
			continue
		}
		var progress atomic.Uint64
		stop := sdk.Watchdog(on.socket, &progress, t.spec.Timeout())
		kind := ""
		for began := sdk.Now(); kind == "" && left > 0 && !t.window.IsOver(began); left-- {
			if kind = t.exchange(on); kind != "" {
				tally.Fail(kind)
				continue
			}
			now := sdk.Now()
			tally.Succeed(began, now, len(t.message))
			began = now
			progress.Add(1)
		}
		stop()
		if kind == "" {
			on.close()
			return
		}
		_ = on.socket.Close()
		if left > 0 && !t.window.IsOver(sdk.Now()) {
			on = t.open()
		}
	}
}

func crr(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	window := t.openWindow()
	tallies := t.each(func(i int, tally *sdk.Tally) {
		channel := sdk.NewByteChannel(nil, len(t.message))
		for left := t.share(i); left > 0; left-- {
			began := sdk.Now()
			if window.IsOver(began) {
				return
			}
			connection, err := t.dial("tcp")
			if err != nil {
				tally.Fail(sdk.ConnectError(err))
				time.Sleep(retry)
				continue
			}
			tally.Connected(sdk.Now() - began)
			_ = connection.SetDeadline(time.Now().Add(spec.Timeout()))
			channel.Conn = connection
			if kind := t.exchange(channel); kind != "" {
				tally.Fail(kind)
			} else {
				tally.Succeed(began, sdk.Now(), len(t.message))
			}
			_ = connection.Close()
		}
	})
	return window.Close(tallies), nil
}

// fanout is one goroutine that writes to all and reads from all: a write to a socket with room does not block.
func fanout(spec *sdk.Spec) (*sdk.Done, error) {
	t, err := newTask(spec)
	if err != nil {
		return nil, err
	}
	lines, _ := t.openAll()
	window := t.openWindow()
	tally, began := window.NewTally(), window.Start()
	for left := spec.Operations; left > 0 && !window.IsOver(began); left-- {
		kind := t.fan(lines)
		now := sdk.Now()
		if kind == "" {
			tally.Succeed(began, now, spec.Connections*len(t.message))
		} else {
			tally.Fail(kind)
			closeAll(lines)
			if left == 1 || window.IsOver(now) {
				break
			}
			time.Sleep(retry)
			lines, _ = t.openAll()
			now = sdk.Now()
		}
		began = now
	}
	closeAll(lines)
	return window.Close([]*sdk.Tally{tally}), nil
}

// fan is one operation of fanout.
func (t *task) fan(lines []line) string {
	deadline := time.Now().Add(t.spec.Timeout())
	for _, on := range lines {
		if on.failure != "" {
			return on.failure
		}
		_ = on.socket.SetDeadline(deadline)
		if err := on.Send(t.message); err != nil {
			return sdk.StreamError(err, 0)
		}
	}
	for _, on := range lines {
		if kind := t.receive(on); kind != "" {
			return kind
		}
	}
	return ""
}

func closeAll(lines []line) {
	for _, on := range lines {
		if on.socket != nil {
			_ = on.socket.Close()
		}
	}
}

// stream is the client of streams on any layer.
func stream(spec *sdk.Spec) (*sdk.Done, error) {
	connect, err := connector(spec)
	if err != nil {
		return nil, err
	}
	stream, err := sdk.NewStream(spec)
	if err != nil {
		return nil, err
	}
	stop, err := stream.StopCondition(spec)
	if err != nil {
		return nil, err
	}
	t := &task{spec: spec, connect: connect}
	lines, described := t.openAll()
	window := t.openWindow()
	stop.Start(window)
	done := window.Close(t.each(func(i int, tally *sdk.Tally) {
		on := lines[i]
		if on.failure != "" {
			tally.Fail(on.failure)
			return
		}
		var progress atomic.Uint64
		defer sdk.Watchdog(on.socket, &progress, spec.Timeout())()
		if kind := stream.Drive(on.channel, stop, tally, &progress); kind != "" {
			tally.Fail(kind)
			_ = on.socket.Close()
			return
		}
		on.close()
	}))
	done.TLS = described
	return done, nil
}
