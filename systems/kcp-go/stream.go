package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtaci/kcp-go"
	"linerate.dev/sdk"
)

const (
	buffer = 65_536
	// KCP has no close: a session stays open for this time after its answer, until the client has acknowledged it.
	linger = time.Second
	// Bytes of both socket buffers: the default of kcptun, the same for every KCP program.
	socketBuffer = 4 << 20
)

// serve accepts sessions until SIGTERM, a goroutine for each.
func (s *setting) serve(spec *sdk.Spec) (*sdk.Done, error) {
	if spec.Listen == "" {
		return nil, sdk.BadSpec(`"listen" is missing`)
	}
	terminated := sdk.Terminated()
	listener, err := kcp.ListenWithOptions(spec.Listen, nil, 0, 0)
	if err != nil {
		return nil, err
	}
	if err := widen(listener); err != nil {
		return nil, err
	}
	sdk.Ready(listener.Addr().String())
	go func() {
		for {
			session, err := listener.AcceptKCP()
			if err != nil {
				return
			}
			s.apply(session)
			go s.receive(session)
		}
	}()
	<-terminated
	return nil, nil
}

// widen requests the socket's buffers.
func widen(socket interface {
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}) error {
	if err := socket.SetReadBuffer(socketBuffer); err != nil {
		return err
	}
	return socket.SetWriteBuffer(socketBuffer)
}

// receive compares frames up to the empty one, and answers.
func (s *setting) receive(session *kcp.UDPSession) {
	defer session.Close()
	frames := reader{content: s.content}
	bytes := make([]byte, buffer)
	for !frames.ended {
		n, err := session.Read(bytes)
		if err != nil {
			return
		}
		frames.take(bytes[:n])
	}
	_, _ = session.Write(binary.LittleEndian.AppendUint64(nil, frames.good))
	_ = session.SetReadDeadline(time.Now().Add(linger))
	_, _ = session.Read(bytes)
}

// drive is the client: a socket, a session and a goroutine for each flow.
func (s *setting) drive(spec *sdk.Spec) (*sdk.Done, error) {
	stop, err := sdk.NewStopCondition(spec)
	if err != nil {
		return nil, err
	}
	address, err := net.ResolveUDPAddr("udp", spec.Connect)
	if err != nil {
		return nil, sdk.BadSpec(`"connect": ` + err.Error())
	}
	tallies := make([]*sdk.Tally, spec.Connections)
	sessions := make([]*kcp.UDPSession, spec.Connections)
	for i := range sessions {
		tallies[i] = &sdk.Tally{}
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: spec.Source(i)})
		if err != nil {
			tallies[i].Fail(sdk.ConnectError(err))
			continue
		}
		defer socket.Close()
		if err := widen(socket); err != nil {
			return nil, err
		}
		if sessions[i], err = kcp.NewConn3(conversation(), address, nil, 0, 0, socket); err != nil {
			return nil, err
		}
		s.apply(sessions[i])
	}
	s.open(sessions, stop, spec.Timeout())
	window := sdk.OpenWindow(spec)
	stop.Start(window)
	var group sync.WaitGroup
	for i, session := range sessions {
		if session == nil {
			continue
		}
		group.Add(1)
		go func(session *kcp.UDPSession, tally *sdk.Tally) {
			defer group.Done()
			written, good, err := s.send(session, stop, spec.Timeout())
			tally.Streamed(good, written, uint64(s.size))
			if err != nil {
				tally.Fail(kind(session, err))
			}
		}(session, tallies[i])
	}
	group.Wait()
	return window.Close(tallies), nil
}

// open sends each session's first four bytes, the length of its first frame, and waits until they are acknowledged. A server
// of kcp-go starts with a window of 32 segments, and its program can only widen it after Accept: a first flight of 32 may
// close that window for the 7 s after which KCP probes it (NOTES.md). A session without an answer fails in the stream.
func (s *setting) open(sessions []*kcp.UDPSession, stop sdk.StopCondition, timeout time.Duration) {
	for _, session := range sessions {
		if session != nil {
			_, _ = session.Write(binary.LittleEndian.AppendUint32(nil, uint32(stop.First(s.size))))
		}
	}
	end := time.Now().Add(timeout)
	for _, session := range sessions {
		for session != nil && !acknowledged(session) && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
	}
}

// acknowledged is true once the server has answered. The smoothed round trip of a session is in milliseconds, and 0 on a
// fast loopback; the timeout is IKCP_RTO_DEF until the first acknowledgement.
func acknowledged(session *kcp.UDPSession) bool {
	return session.GetSRTT() > 0 || session.GetRTO() != kcp.IKCP_RTO_DEF
}

// send writes frames until the stop condition. It returns the bytes written, and the good ones by the server's count. The
// length of the first frame has been sent already.
func (s *setting) send(session *kcp.UDPSession, stop sdk.StopCondition, timeout time.Duration) (written, good uint64, err error) {
	defer session.Close()
	var progress atomic.Uint64
	defer sdk.Watchdog(session, &progress, timeout)()
	frame := make([]byte, 0, 4+s.size)
	for length := stop.First(s.size); ; length = stop.Piece(written, s.size) {
		frame = frame[:0]
		if written > 0 {
			frame = binary.LittleEndian.AppendUint32(frame, uint32(length))
		}
		frame = append(frame, s.content.At(written, length)...)
		if _, err := session.Write(frame); err != nil {
			// The server may have received a part of it.
			return 0, 0, err
		}
		written += uint64(length)
		progress.Add(1)
		if length == 0 {
			break
		}
	}
	number := make([]byte, 8)
	if _, err := io.ReadFull(session, number); err != nil {
		return 0, 0, err
	}
	if good = binary.LittleEndian.Uint64(number); good > written {
		return 0, 0, errMalformed
	}
	return written, good, nil
}

// errMalformed: the server counts more good bytes than were written.
var errMalformed = errors.New("malformed")

// kind returns the kind of failure. kcp-go's own errors have no type, and its sockets are not connected, so a refusal is not
// visible.
func kind(session *kcp.UDPSession, err error) string {
	switch {
	case err == errMalformed:
		return "malformed"
	case err.Error() != "timeout":
		return sdk.StreamError(err, 1)
	case !acknowledged(session):
		return "connect_timeout"
	}
	return "timeout"
}

// conversation returns a random number other than 0.
func conversation() uint32 {
	for {
		number := make([]byte, 4)
		_, _ = rand.Read(number) // never fails on Linux
		if conv := binary.LittleEndian.Uint32(number); conv != 0 {
			return conv
		}
	}
}

// reader decodes the framed stream, which may be cut anywhere.
type reader struct {
	content  *sdk.Content
	prefix   []byte
	left     int
	at, good uint64
	ended    bool
}

func (r *reader) take(bytes []byte) {
	for len(bytes) > 0 && !r.ended {
		if r.left == 0 {
			r.prefix = append(r.prefix, bytes[0])
			bytes = bytes[1:]
			if len(r.prefix) == 4 {
				r.left = int(binary.LittleEndian.Uint32(r.prefix))
				r.prefix, r.ended = r.prefix[:0], r.left == 0
			}
			continue
		}
		length := r.left
		if length > len(bytes) {
			length = len(bytes)
		}
		r.good += r.content.Good(r.at, bytes[:length])
		r.at += uint64(length)
		r.left -= length
		bytes = bytes[length:]
	}
}
