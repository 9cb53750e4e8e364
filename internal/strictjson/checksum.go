package strictjson

import (
	"fmt"
	"hash/crc32"
)

// Checksum is the CRC-32C of bytes, as files beside the JSON that they hold write it.
func Checksum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}
