package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/internal/vfs"
)

const (
	markMagic   = 0x314d4244 // "DBM1"
	markVersion = 1
	markBytes   = 32
)

// mark is the file that remembers up to where the log is known to be on stable storage. It is what tells damage from a
// torn tail: below it every frame must be there. It is written after each sync but not synced itself, so after a power
// cut it may be older than the truth, never newer; then, without it, or with a damaged one, the frames' own notes tell
// what they can. It is lowered, and synced, before anything is cut from the log.
type mark struct {
	file vfs.File
	path string
	buf  [markBytes]byte
}

// marked is what a mark says; nothing, if there is none that can be read.
type marked struct {
	durable uint64
	state   markState
}

// markState is what the journal was doing when it wrote a mark.
type markState uint8

const (
	markOpen    markState = iota
	markClosed            // it was closed in order, with its end at the mark
	markCutting           // it destroys frames above the mark, so that what those behind them say proves nothing
)

// openMark opens or creates the mark.
func openMark(fsys vfs.FS, dir string) (m *mark, was marked, err error) {
	m = &mark{path: filepath.Join(dir, "mark")}
	if m.file, err = fsys.OpenFile(m.path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, was, err
	}
	if was, err = readMark(m.file); err != nil {
		_ = m.file.Close()
		return nil, was, fmt.Errorf("reading %s: %w", m.path, err)
	}
	return m, was, nil
}

func readMark(f vfs.File) (was marked, err error) {
	size, err := f.Size()
	if err != nil || size < markBytes {
		return was, err
	}
	var buf [markBytes]byte
	if _, err := f.ReadAt(buf[:], 0); err != nil {
		return was, err
	}
	le := binary.LittleEndian
	if le.Uint32(buf[:]) != markMagic || le.Uint32(buf[4:]) != markVersion || crc32.Checksum(buf[:28], castagnoli) != le.Uint32(buf[28:]) {
		return was, nil
	}
	return marked{le.Uint64(buf[8:]), markState(buf[16])}, nil
}

// set notes that all below durable is on stable storage.
func (m *mark) set(durable uint64, state markState) error {
	le := binary.LittleEndian
	le.PutUint32(m.buf[0:], markMagic)
	le.PutUint32(m.buf[4:], markVersion)
	le.PutUint64(m.buf[8:], durable)
	m.buf[16] = byte(state)
	le.PutUint32(m.buf[28:], crc32.Checksum(m.buf[:28], castagnoli))
	if _, err := m.file.WriteAt(m.buf[:], 0); err != nil {
		return fmt.Errorf("writing %s: %w", m.path, err)
	}
	return nil
}

// setSynced is set, and returns when it is on stable storage.
func (m *mark) setSynced(durable uint64, state markState) error {
	if err := m.set(durable, state); err != nil {
		return err
	}
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", m.path, err)
	}
	return nil
}
