package vfs

import (
	"os"
	"strings"
)

// BootID names the machine's running boot: another one means that what was written and not synced may be lost. It is ""
// where it cannot be known.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
