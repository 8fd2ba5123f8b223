package sdk

import (
	"syscall"
	"time"
	"unsafe"
)

// Linux: clock_gettime(2). time.Now() reads the monotonic clock through the vDSO but does not expose its value. The window
// needs the value: it is compared with the clocks of other processes.
const (
	monotonic  = 1
	processCPU = 2
)

var (
	origin     = time.Now()
	originNano = read(monotonic)
)

// Now returns CLOCK_MONOTONIC in nanoseconds: one system call at start, the vDSO from then on.
func Now() uint64 { return originNano + uint64(time.Since(origin)) }

// CPU returns the user and system time of the process in nanoseconds.
func CPU() uint64 { return read(processCPU) }

func read(clock uintptr) uint64 {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic(errno) // Linux has had both clocks since 2.6.12
	}
	return uint64(t.Nano())
}
