package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"linerate.dev/sdk"
)

const (
	// The longest request, in bytes.
	longest = 1 << 30
	// Streams under way on a connection; quic-go's servers allow 100 by default.
	mostStreams = 1_000
	// Bytes that one call reads at most.
	buffer = 64 << 10
	// Wait after a failed operation, so that a dead port does not use a CPU.
	retry = time.Millisecond
)

// peer is a client's task.
type peer struct {
	spec      *sdk.Spec
	transport *quic.Transport
	address   net.Addr
	config    *tls.Config
	request   []byte
	answer    uint64
	streams   int
	window    *sdk.Window
	// A connection was established, with the contract's cipher suite.
	connected atomic.Bool
	// Where sessions are resumed: the full handshakes that may still be made, the first of each connection.
	full atomic.Int64
}

// line is a connection that its goroutines share.
type line struct {
	mutex      sync.Mutex
	connection *quic.Conn
}

// drive is the client: connections of one socket, and on each a goroutine for every stream that is under way (rr), or a
// connection for each request (crr).
func drive(spec *sdk.Spec) (*sdk.Done, error) {
	p, err := newPeer(spec)
	if err != nil {
		return nil, err
	}
	lines, exchangeAll := make([]line, spec.Connections), p.connectEach
	if spec.Workload == "rr" {
		exchangeAll = p.exchangeAll
		for i := range lines {
			_, _ = p.reach(&lines[i])
		}
	}
	p.window = sdk.OpenWindow(spec)
	tallies := make([]*sdk.Tally, spec.Connections*p.streams)
	var group sync.WaitGroup
	for i := range tallies {
		tallies[i] = p.window.NewTally()
		group.Go(func() { exchangeAll(&lines[i%len(lines)], p.share(i, len(tallies)), tallies[i]) })
	}
	group.Wait()
	done := p.window.Close(tallies)
	// The content of an answer may be anything.
	done.Verified = 0
	if p.connected.Load() {
		done.TLS = "TLSv1.3 TLS_AES_128_GCM_SHA256 crypto/tls " + runtime.Version()
	}
	return done, nil
}

func newPeer(spec *sdk.Spec) (*peer, error) {
	if spec.Size < prefix || spec.Size > longest {
		return nil, sdk.BadSpec(fmt.Sprintf(`"size" must be %d to %d bytes`, prefix, longest))
	}
	if spec.Operations == 0 && spec.DurationNs == 0 {
		return nil, sdk.BadSpec(`a client needs "operations" or "duration_ns"`)
	}
	if spec.Connect == "" {
		return nil, sdk.BadSpec(`"connect" is missing`)
	}
	answer, err := number(spec, "response", uint64(spec.Size), 0, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	most := uint64(mostStreams)
	if spec.Workload == "crr" {
		most = 1
	}
	streams, err := number(spec, "streams", 1, 1, most)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, ServerName: spec.TLS.Name, RootCAs: x509.NewCertPool()}
	if spec.TLS.Name == "" || !config.RootCAs.AppendCertsFromPEM([]byte(spec.TLS.Authority)) {
		return nil, sdk.BadSpec(`a client needs "tls.authority" and "tls.name"`)
	}
	resumesNothing, err := fullOnly(spec)
	if err != nil {
		return nil, err
	}
	if !resumesNothing {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	address, err := net.ResolveUDPAddr("udp", spec.Connect)
	if err != nil {
		return nil, sdk.BadSpec(`"connect": ` + err.Error())
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: spec.Source(0)})
	if err != nil {
		return nil, err
	}
	request := sdk.Page(spec.Size)
	binary.BigEndian.PutUint64(request, answer)
	p := &peer{
		spec: spec, transport: &quic.Transport{Conn: socket}, address: address, config: config,
		request: request, answer: answer, streams: int(streams),
	}
	p.full.Store(int64(spec.Connections))
	return p, nil
}

// number is an option that is a whole number from least to most.
func number(spec *sdk.Spec, name string, otherwise, least, most uint64) (uint64, error) {
	text, there := spec.Options[name]
	if !there {
		return otherwise, nil
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil || value < least || value > most {
		return 0, sdk.BadSpec(fmt.Sprintf(`"options.%s" must be %d to %d, not %s`, name, least, most, text))
	}
	return value, nil
}

// share returns one goroutine's part of the operations.
func (p *peer) share(index, parts int) uint64 {
	if p.spec.Operations == 0 {
		return math.MaxUint64
	}
	share := p.spec.Operations / uint64(parts)
	if uint64(index) < p.spec.Operations%uint64(parts) {
		share++
	}
	return share
}

// reach returns the connection, or a new one in place of one that has ended; or the kind of failure.
func (p *peer) reach(on *line) (*quic.Conn, string) {
	on.mutex.Lock()
	defer on.mutex.Unlock()
	if on.connection != nil && on.connection.Context().Err() == nil {
		return on.connection, ""
	}
	connection, kind := p.dial()
	on.connection = connection
	return connection, kind
}

// dial returns a new connection, or the kind of failure.
func (p *peer) dial() (*quic.Conn, string) {
	limit, cancel := context.WithTimeout(context.Background(), p.spec.Timeout())
	defer cancel()
	connection, err := p.transport.Dial(limit, p.address, p.config, nil)
	var refused *quic.TransportError
	switch {
	case err == nil && connection.ConnectionState().TLS.CipherSuite != tls.TLS_AES_128_GCM_SHA256:
		// Go cannot be set to one cipher suite of TLS 1.3: another than the contract's is a failure.
		_ = connection.CloseWithError(0, "")
		return nil, "tls_failed"
	case err == nil && p.config.ClientSessionCache != nil && !connection.ConnectionState().TLS.DidResume && p.full.Add(-1) < 0:
		_ = connection.CloseWithError(0, "")
		return nil, "tls_failed"
	case err == nil:
		p.connected.Store(true)
		return connection, ""
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "connect_timeout"
	case errors.As(err, &refused) && refused.ErrorCode.IsCryptoError():
		return nil, "tls_failed"
	}
	return nil, sdk.ConnectError(err)
}

// slot is what one goroutine has under way.
type slot struct {
	stream atomic.Pointer[quic.Stream]
	cancel context.CancelFunc
}

// SetDeadline breaks the stream: the watchdog found no progress.
func (s *slot) SetDeadline(at time.Time) error {
	s.cancel()
	if stream := s.stream.Load(); stream != nil {
		return stream.SetDeadline(at)
	}
	return nil
}

// exchangeAll makes one request after the other.
func (p *peer) exchangeAll(on *line, left uint64, tally *sdk.Tally) {
	into := make([]byte, buffer)
	// As of an echo, the bytes of one direction count: the longer one.
	bytes := max(p.answer, uint64(len(p.request)))
	for left > 0 && !p.window.IsOver(sdk.Now()) {
		connection, kind := p.reach(on)
		if kind != "" {
			left--
			tally.Fail(kind)
			time.Sleep(retry)
			continue
		}
		var progress atomic.Uint64
		limit, cancel := context.WithCancel(context.Background())
		under := &slot{cancel: cancel}
		stop := sdk.Watchdog(under, &progress, p.spec.Timeout())
		for began := sdk.Now(); kind == "" && left > 0 && !p.window.IsOver(began); left-- {
			if kind = p.exchange(limit, connection, under, into); kind != "" {
				tally.Fail(kind)
				continue
			}
			now := sdk.Now()
			tally.Succeed(began, now, int(bytes))
			began = now
			progress.Add(1)
		}
		stop()
		cancel()
	}
}

// connectEach makes a connection for each request.
func (p *peer) connectEach(_ *line, left uint64, tally *sdk.Tally) {
	into := make([]byte, buffer)
	bytes := max(p.answer, uint64(len(p.request)))
	for ; left > 0; left-- {
		began := sdk.Now()
		if p.window.IsOver(began) {
			return
		}
		connection, kind := p.dial()
		if kind != "" {
			tally.Fail(kind)
			time.Sleep(retry)
			continue
		}
		tally.Connected(sdk.Now() - began)
		limit, cancel := context.WithTimeout(context.Background(), p.spec.Timeout())
		under := &slot{cancel: cancel}
		stop := context.AfterFunc(limit, func() { _ = under.SetDeadline(time.Unix(1, 0)) })
		if kind = p.exchange(limit, connection, under, into); kind == "" {
			tally.Succeed(began, sdk.Now(), int(bytes))
		} else {
			tally.Fail(kind)
		}
		stop()
		cancel()
		_ = connection.CloseWithError(0, "")
	}
}

// exchange opens a stream, sends the request and reads the answer; it returns the kind of failure, or "".
func (p *peer) exchange(limit context.Context, connection *quic.Conn, under *slot, into []byte) string {
	stream, err := connection.OpenStreamSync(limit)
	if err != nil {
		return kindOf(err, 0)
	}
	under.stream.Store(stream)
	if _, err = stream.Write(p.request); err != nil {
		return kindOf(err, 0)
	}
	if err = stream.Close(); err != nil {
		return kindOf(err, 0)
	}
	for received := uint64(0); ; {
		count, err := stream.Read(into)
		received += uint64(count)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if received == 0 && p.answer > 0 {
				return "empty_reply"
			}
			if received != p.answer {
				return "wrong_length"
			}
			return ""
		default:
			return kindOf(err, received)
		}
	}
}

// kindOf names an error of an established connection, after this many bytes of the answer.
func kindOf(err error, received uint64) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	var reset *quic.StreamError
	var closed *quic.ApplicationError
	if errors.As(err, &reset) || errors.As(err, &closed) {
		return "reset"
	}
	return sdk.StreamError(err, int(received))
}
