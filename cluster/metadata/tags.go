package metadata

import (
	"errors"
	"strings"
)

// ErrTagged refuses to change a stream through one of its tags.
var ErrTagged = errors.New("a stream can only be read by a tag")

// tagMark stands between a stream's name and a tag. No stream's name has it.
const tagMark = "@"

// SplitTag splits "stream@tag", the name under which a consumer reads only the
// batches that hold a tag. tag is empty in the name of a stream.
func SplitTag(name string) (stream, tag string) {
	stream, tag, _ = strings.Cut(name, tagMark)
	return stream, tag
}

// JoinTag is the name of a stream's tag, or the stream's own if tag is empty.
func JoinTag(stream, tag string) string {
	if tag == "" {
		return stream
	}
	return stream + tagMark + tag
}
