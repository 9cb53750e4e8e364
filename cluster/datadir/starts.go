package datadir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/daybook-data/daybook/internal/vfs"
)

// StartsName is the file that counts the starts of a node while its disk is full, where FileName cannot be written anew.
// Its blocks are there from a start with room on, and are written over in place:
//
//	0     slot: magic (4 bytes), CRC-32C of the count (4), count (8)
//	4096  the same again
//
// One slot is written and synced after the other, so either may be torn or lost. What counts is the most of both and of
// FileName: a start may be counted in one of them alone, but no number is used twice.
const StartsName = "starts"

const (
	slotBytes   = 4096 // no write touches the block of another slot
	slotMagic   = 0x31434244
	startsBytes = 2 * slotBytes
)

// CountStart counts one more start of the node. When it returns nil the new number, which no start before had, is durable.
func (f *File) CountStart() error {
	spare, counted, err := f.openStarts()
	if err != nil {
		return err
	}
	if spare != nil {
		defer spare.Close()
	}
	next := max(f.Get().Starts, counted) + 1
	err = f.Update(func(i *Identity) { i.Starts = next })
	switch {
	case err == nil && spare == nil:
		return f.makeStarts(next)
	case err == nil || !full(err):
		return err
	case spare == nil:
		return fmt.Errorf("%w: some KiB must be free for the next start, from which on none are needed for those that follow", err)
	}
	if err := writeStarts(spare, next); err != nil {
		return fmt.Errorf("counting the start in %s: %w", f.startsPath(), err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Starts = next
	return nil
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func (f *File) startsPath() string { return path.Join(path.Dir(f.path), StartsName) }

// openStarts opens the file and returns what it has counted; spare is nil if there is none of the full size.
func (f *File) openStarts() (spare vfs.File, counted uint64, err error) {
	spare, err = f.fs.OpenFile(f.startsPath(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size, err := spare.Size()
	for at := int64(0); err == nil && at+slotBytes <= size && at < startsBytes; at += slotBytes {
		var b [16]byte
		if _, err = spare.ReadAt(b[:], at); err == nil {
			counted = max(counted, parseSlot(b[:]))
		}
	}
	if err != nil || size < startsBytes { // its making was cut off
		err = errors.Join(err, spare.Close())
		return nil, counted, err
	}
	return spare, counted, nil
}

// makeStarts makes the file. Without room for it the node starts all the same, as it has been counted: the next start tries again.
func (f *File) makeStarts(count uint64) error {
	spare, err := f.fs.OpenFile(f.startsPath(), os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		if err = spare.Allocate(0, startsBytes); err == nil {
			err = writeStarts(spare, count)
		}
		err = errors.Join(err, spare.Close())
	}
	if err == nil {
		err = f.fs.SyncDir(path.Dir(f.path))
	}
	if err != nil && !full(err) {
		return fmt.Errorf("making %s: %w", f.startsPath(), err)
	}
	if err != nil {
		_ = f.fs.Remove(f.startsPath()) // it holds nothing that the other file does not
	}
	return nil
}

func writeStarts(spare vfs.File, count uint64) error {
	block := make([]byte, slotBytes) // as a whole, so that it has been written when it must be
	putSlot(block, count)
	for at := int64(0); at < startsBytes; at += slotBytes {
		if _, err := spare.WriteAt(block, at); err != nil {
			return err
		}
		if err := spare.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func putSlot(b []byte, count uint64) {
	le := binary.LittleEndian
	le.PutUint32(b, slotMagic)
	le.PutUint64(b[8:], count)
	le.PutUint32(b[4:], crc32.Checksum(b[8:16], crc32.MakeTable(crc32.Castagnoli)))
}

// parseSlot returns what a slot has counted; 0 if it is torn or was never written.
func parseSlot(b []byte) uint64 {
	le := binary.LittleEndian
	if le.Uint32(b) != slotMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:16], crc32.MakeTable(crc32.Castagnoli)) {
		return 0
	}
	return le.Uint64(b[8:])
}
