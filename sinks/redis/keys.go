package redis

import (
	"fmt"
	"strconv"
	"strings"
)

// reserved begins the keys that Daybook keeps for itself.
const reserved = "daybook:"

// versionKey returns the key that holds the version of the row at key, in the same slot.
// Different keys have different version keys: the character after the v tells the two
// forms apart, and each form holds the key as it is.
func versionKey(key string) string {
	if tagged(key) {
		return reserved + "v:" + key
	}
	return reserved + "v={" + key + "}"
}

// rowKey is the inverse of versionKey.
func rowKey(versionKey string) (key string, ok bool) {
	if key, ok := strings.CutPrefix(versionKey, reserved+"v:"); ok {
		return key, true
	}
	if key, ok := strings.CutPrefix(versionKey, reserved+"v={"); ok {
		return strings.CutSuffix(key, "}")
	}
	return "", false
}

// tagged reports whether only a part of the key in braces decides its slot.
func tagged(key string) bool {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return false
	}
	return strings.IndexByte(rest, '}') > 0
}

// Versions stand as 16 hex digits, because the numbers of Redis's Lua are exact up to
// 2^53 only. As texts of one length they compare like the numbers.
func hexVersion(v uint64) string { return fmt.Sprintf("%016x", v) }

func parseVersion(s string) (uint64, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("%q is not a version of 16 hex digits", s)
	}
	return strconv.ParseUint(s, 16, 64)
}
