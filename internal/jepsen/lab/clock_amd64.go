//go:build linux

package lab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// HasClocks says whether [Machine.SetClock] works on this processor.
const HasClocks = true

// clock is what a process takes for the time of day. There is no namespace for it; but programs ask the kernel's vDSO, a
// small library that is mapped into each process, and a tracer may write there. Its clock_gettime is replaced, before the
// program's first instruction, by one that asks the kernel and adds a shift to the time of day, and to no other clock.
type clock struct {
	memory *os.File // of the process, whoever gets its number later
	data   int64    // address of what the code adds
	slot   byte     // the one in use
}

// shifted is the code that replaces clock_gettime, in the C calling convention: the clock's number in edi, where to write
// seconds and nanoseconds in rsi. The shift is in two slots of nanoseconds, of which a byte behind them says which counts:
// one byte is written at once, so no reader sees half a shift.
var shifted = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228 (clock_gettime)
	0x0f, 0x05, // syscall
	0x85, 0xc0, // test eax, eax
	0x75, 0x39, // jne out
	0x85, 0xff, // test edi, edi (CLOCK_REALTIME)
	0x74, 0x05, // je shift
	0x83, 0xff, 0x05, // cmp edi, 5 (CLOCK_REALTIME_COARSE)
	0x75, 0x30, // jne out
	0x48, 0x69, 0x06, 0x00, 0xca, 0x9a, 0x3b, // shift: imul rax, [rsi], 1000000000
	0x48, 0x03, 0x46, 0x08, // add rax, [rsi+8]
	0x0f, 0xb6, 0x0d, 0x32, 0x00, 0x00, 0x00, // movzx ecx, byte [which]
	0x48, 0x8d, 0x15, 0x1b, 0x00, 0x00, 0x00, // lea rdx, [slots]
	0x48, 0x03, 0x04, 0xca, // add rax, [rdx+rcx*8]
	0x31, 0xd2, // xor edx, edx
	0xb9, 0x00, 0xca, 0x9a, 0x3b, // mov ecx, 1000000000
	0x48, 0xf7, 0xf1, // div rcx
	0x48, 0x89, 0x06, // mov [rsi], rax
	0x48, 0x89, 0x56, 0x08, // mov [rsi+8], rdx
	0x31, 0xc0, // xor eax, eax
	0xc3,             // out: ret
	0xcc, 0xcc, 0xcc, // for the alignment of slots, two of 8 bytes; which is behind them
}

const (
	slots   = 2
	ofSlots = 8 * slots
)

// newClock replaces the clock of a process that has not begun to run: who calls traces it. It starts at shift.
func newClock(pid int, shift time.Duration) (*clock, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c := &clock{memory: memory}
	if err := c.install(pid, shift); err != nil {
		return nil, errors.Join(fmt.Errorf("replacing the clock of process %d: %w", pid, err), memory.Close())
	}
	return c, nil
}

func (c *clock) install(pid int, shift time.Duration) error {
	at, err := c.find(pid)
	if err != nil {
		return err
	}
	c.data = at + int64(len(shifted))
	code := append(bytes.Clone(shifted), make([]byte, ofSlots+1)...)
	binary.LittleEndian.PutUint64(code[len(shifted):], uint64(shift))
	_, err = c.memory.WriteAt(code, at)
	return err
}

// find returns the address of the vDSO's clock_gettime.
func (c *clock) find(pid int) (int64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
			return 0, fmt.Errorf("reading %q: %w", line, err)
		}
		image := make([]byte, to-from)
		if _, err := c.memory.ReadAt(image, from); err != nil {
			return 0, err
		}
		at, err := findClock(image)
		return from + at, err
	}
	return 0, errors.New("it has no vDSO: boot the kernel without vdso=0")
}

// findClock returns where clock_gettime begins in the image of a vDSO.
func findClock(image []byte) (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name != "__vdso_clock_gettime" {
			continue
		}
		if need := uint64(len(shifted) + ofSlots + 1); s.Size < need || s.Value%8 != 0 {
			return 0, fmt.Errorf("this kernel's clock_gettime has %d bytes at %#x, %d and an aligned place are needed", s.Size, s.Value, need)
		}
		return int64(s.Value), nil
	}
	return 0, errors.New("its vDSO has no clock_gettime")
}

// set shifts the clock. A process that has ended has none.
func (c *clock) set(shift time.Duration) error {
	next := (c.slot + 1) % slots
	_, err := c.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(shift)), c.data+8*int64(next))
	if err == nil {
		_, err = c.memory.WriteAt([]byte{next}, c.data+ofSlots)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // nothing to write to any more
		return nil
	}
	if err == nil {
		c.slot = next
	}
	return err
}

func (c *clock) close() error { return c.memory.Close() }
