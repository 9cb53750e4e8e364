package file_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// BenchmarkWrite writes lines of an access log into real files, a flush every 64 MiB.
func BenchmarkWrite(b *testing.B) {
	for _, ext := range []string{"ndjson", "ndjson.zst", "ndjson.gz"} {
		b.Run(ext, func(b *testing.B) {
			var batch []pipeline.Delivery
			size := 0
			for n := range int64(2000) {
				d := event(n, fmt.Sprintf(`{"remote_addr":"10.0.%d.%d","time":"2026-09-21T14:%02d:00Z","request":"GET /item/%d HTTP/1.1","status":200,"bytes":%d,"referer":"https://example.org/%d","agent":"Mozilla/5.0 (X11; Linux x86_64)"}`, n%256, n*7%256, n%60, n*7919%10007, n*31%65536, n%97))
				size += len(d.Value) + 1
				batch = append(batch, d)
			}
			s, _, _ := resume(b, config(vfs.OS{}, filepath.Join(b.TempDir(), "out")+"/{stream}/{yyyy-MM-dd}/{HH}."+ext), sinktest.NewEnv(b))
			b.SetBytes(int64(size / len(batch)))
			b.ReportAllocs()
			written := 0
			for n := 0; b.Loop(); n++ {
				if n%len(batch) > 0 {
					continue
				}
				sinktest.Write(b, s, batch...)
				if written += size; written > 64<<20 {
					written = 0
					sinktest.Flush(b, s, int64(n))
				}
			}
		})
	}
}
