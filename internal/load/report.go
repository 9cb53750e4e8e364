package load

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what a run measured. Records are those counted at the destination, MB are 10^6 bytes of record values.
type Report struct {
	Stream      string  `json:"stream"`
	Mode        string  `json:"mode"`
	Raw         bool    `json:"raw"`
	Partitions  int     `json:"partitions"`
	Clients     int     `json:"clients"`
	Corpus      string  `json:"corpus,omitempty"`
	Size        int     `json:"size,omitempty"`
	Compression string  `json:"compression,omitempty"`
	Ratio       float64 `json:"ratio,omitempty"` // of prepared batches: bytes of values by bytes sent
	BatchBytes  int     `json:"batch_bytes,omitempty"`
	Batch       int     `json:"batch_records,omitempty"` // records of a full batch
	Acks        string  `json:"acks,omitempty"`
	Rate        float64 `json:"rate,omitempty"` // of an open loop

	Produced *Part `json:"produced,omitempty"`
	Consumed *Part `json:"consumed,omitempty"`

	ClientCPU float64  `json:"client_cpu_s"`
	ServerCPU *float64 `json:"server_cpu_s,omitempty"`
	Verified  bool     `json:"verified"`
}

// Part is one direction of a run.
type Part struct {
	Records   int64    `json:"records"`
	Seconds   float64  `json:"seconds"`
	PerSecond float64  `json:"records_per_s"`
	MB        float64  `json:"mb_per_s"`
	Latency   *Latency `json:"latency,omitempty"`
}

func (r *run) report(produceTime, consumeTime, client, server time.Duration) *Report {
	o := r.o
	out := &Report{
		Stream: o.Stream, Mode: o.Mode, Raw: o.Raw, Partitions: len(r.t.leaders), Clients: o.Clients,
		ClientCPU: client.Seconds(),
	}
	if len(o.ServerPIDs) > 0 {
		s := server.Seconds()
		out.ServerCPU = &s
	}
	if o.Mode != Consume {
		out.Corpus, out.Size, out.Compression, out.Acks, out.Rate = o.Corpus, o.Size, o.Compression, o.Acks, o.Rate
		out.BatchBytes, out.Batch = o.BatchBytes, o.recordsPerBatch()
		if r.sentBytes > 0 {
			out.Ratio = float64(r.plainBytes) / float64(r.sentBytes)
		}
		n := r.produced.Load()
		out.Produced = newPart(n, n*int64(o.Size), produceTime, &r.produceLatency)
	}
	if o.Mode != Produce {
		out.Consumed = newPart(r.consumed.Load(), r.consumedBytes.Load(), consumeTime, &r.readLatency)
	}
	return out
}

func newPart(records, bytes int64, took time.Duration, h *Histogram) *Part {
	s := took.Seconds()
	return &Part{Records: records, Seconds: s, PerSecond: float64(records) / s, MB: float64(bytes) / 1e6 / s, Latency: h.Latency()}
}

// records is what CPU time is divided by: what was produced, or read where nothing was.
func (r *Report) records() int64 {
	if r.Produced != nil {
		return r.Produced.Records
	}
	return r.Consumed.Records
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	way := "as an application"
	if r.Raw {
		way = "raw"
	}
	fmt.Fprintf(&b, "%s %s, %s: %d partitions, %d clients", r.Mode, r.Stream, way, r.Partitions, r.Clients)
	if r.Produced != nil {
		fmt.Fprintf(&b, ", acks %s\n  %-9s %s of %d bytes, %d a batch, %s", r.Acks, "records", r.Corpus, r.Size, r.Batch, r.Compression)
		if r.Ratio > 0 {
			fmt.Fprintf(&b, " %.2f:1", r.Ratio)
		}
	}
	b.WriteByte('\n')
	r.part(&b, "produced", r.Produced)
	r.part(&b, "consumed", r.Consumed)
	million := float64(r.records()) / 1e6
	fmt.Fprintf(&b, "  %-9s %.2f CPU-s, %.3f per million\n", "client", r.ClientCPU, r.ClientCPU/million)
	if r.ServerCPU != nil {
		fmt.Fprintf(&b, "  %-9s %.2f CPU-s, %.3f per million, %s records per CPU-s\n", "server", *r.ServerCPU, *r.ServerCPU/million,
			count(int64(float64(r.records())/max(*r.ServerCPU, 1e-9))))
	}
	if r.Verified {
		fmt.Fprintf(&b, "  %-9s every record was read back and is what was sent\n", "verified")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) part(b *strings.Builder, name string, p *Part) {
	if p == nil {
		return
	}
	fmt.Fprintf(b, "  %-9s %s in %.2f s: %s/s, %.1f MB/s\n", name, count(p.Records), p.Seconds, count(int64(p.PerSecond)), p.MB)
	if l := p.Latency; l != nil {
		from := "from sending (closed loop)"
		if r.Rate > 0 {
			from = "from when each was due (open loop)"
		}
		fmt.Fprintf(b, "  %-9s p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, most %.2f ms %s\n", "latency", l.P50, l.P99, l.P999, l.Max, from)
	}
}

// count writes a number with its thousands apart.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
