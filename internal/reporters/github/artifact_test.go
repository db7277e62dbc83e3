package github

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// upload adds an artifact and the workflow run that created it. change, if not
// nil, modifies their properties first.
func (w *fakeGitHub) upload(id int64, change func(artifact, run, ofRun map[string]any)) {
	ofRun := map[string]any{
		"id": id + 100, "repository_id": 1, "head_repository_id": 1, "head_branch": "main", "head_sha": headSHA,
	}
	artifact := map[string]any{"id": id, "name": "base", "size_in_bytes": 10, "expired": false, "workflow_run": ofRun,
		"created_at": time.Date(2026, 1, 1, 0, 0, int(id), 0, time.UTC).Format(time.RFC3339)}
	run := map[string]any{
		"id": id + 100, "event": "push", "head_branch": "main", "head_sha": headSHA, "conclusion": "failure",
		"repository": map[string]any{"id": 1}, "head_repository": map[string]any{"id": 1}}
	if change != nil {
		change(artifact, run, ofRun)
	}
	w.artifacts = append(w.artifacts, artifact)
	w.runs[id+100] = run
}

func TestArtifacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		w.upload(1, nil)
		w.upload(3, nil)
		w.upload(2, func(a, run, of map[string]any) { run["event"] = "schedule" })
		hostile := map[string]func(a, run, of map[string]any){
			"fork's main": func(a, run, of map[string]any) {
				of["head_repository_id"] = 2
				run["event"] = "pull_request"
			},
			"fork's run": func(a, run, of map[string]any) {
				run["head_repository"] = map[string]any{"id": 2}
			},
			"pull request":          func(a, run, of map[string]any) { run["event"] = "pull_request" },
			"target":                func(a, run, of map[string]any) { run["event"] = "pull_request_target" },
			"follow-up":             func(a, run, of map[string]any) { run["event"] = "workflow_run" },
			"expired":               func(a, run, of map[string]any) { a["expired"] = true },
			"other name":            func(a, run, of map[string]any) { a["name"] = "Base" },
			"other branch":          func(a, run, of map[string]any) { of["head_branch"] = "dev" },
			"run of another branch": func(a, run, of map[string]any) { run["head_branch"] = "dev" },
			"run of another commit": func(a, run, of map[string]any) { run["head_sha"] = baseSHA },
			"no commit":             func(a, run, of map[string]any) { of["head_sha"] = "main" },
			"no repository": func(a, run, of map[string]any) {
				delete(of, "repository_id")
				delete(of, "head_repository_id")
			},
			"no run":            func(a, run, of map[string]any) { delete(a, "workflow_run") },
			"retention unknown": func(a, run, of map[string]any) { delete(a, "expired") },
		}
		id := int64(10)
		for _, change := range hostile {
			w.upload(id, change)
			id++
		}
		w.upload(9, nil)
		delete(w.runs, 109) // deleted
		for range 150 {     // another page
			w.upload(id, hostile["expired"])
			id++
		}
		w.upload(500, nil)
		w.noLink = true
		w.faultOf = nth("GET", "/artifacts", badGateway, trouble{kind: "empty"})
		s := w.session(Options{})
		got, err := s.Artifacts(t.Context(), "base", "main", 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, a := range got {
			ids = append(ids, a.ID)
		}
		if fmt.Sprint(ids) != "[500 3 2 1]" || got[2].Event != "schedule" || got[0].RunID != 600 ||
			got[0].HeadSHA != headSHA || got[0].HeadBranch != "main" || got[0].Size != 10 {
			t.Errorf("%+v", got)
		}
		if n := w.count("GET /repos/o/r/actions/artifacts?name=base&"); n < 2 {
			t.Errorf("%d requests contain the name, want at least 2", n)
		}
		if got, err := s.Artifacts(t.Context(), "base", "main", 1); err != nil || len(got) != 1 || got[0].ID != 500 {
			t.Errorf("newest: %v %v", got, err)
		}
		if got, err := s.Artifacts(t.Context(), "base&name=x", "main", 1); err != nil || len(got) != 0 {
			t.Errorf("artifact with another name: %v %v", got, err)
		}
	})
}

// TestOldArtifactsAreNotRead checks that the number of requested pages is
// bounded: the oldest artifacts are never listed.
func TestOldArtifactsAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		for id := range int64(1300) {
			w.upload(2000-id, nil)
		}
		s := w.session(Options{})
		got, err := s.Artifacts(t.Context(), "base", "main", 3)
		if err != nil || len(got) != 3 || got[0].ID != 2000 || got[2].ID != 1998 {
			t.Fatal(got, err)
		}
		if pages, runs := w.count("GET /repos/o/r/actions/artifacts"),
			w.count("GET /repos/o/r/actions/runs"); pages != 10 || runs != 3 {
			t.Errorf("%d pages, %d runs", pages, runs)
		}
	})
}

func zipOf(t testing.TB, entries ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(entries); i += 2 {
		entry, err := z.Create(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(entry, entries[i+1])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDownload(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(int, *http.Request) trouble
		size  int64
		err   error
		says  string
	}{
		"plain": {},
		"storage fails": {
			wrong: nth("GET", "/x", trouble{kind: "refuse", status: 403}, trouble{kind: "cut"}, trouble{kind: "reset"}),
		},
		"API fails": {wrong: nth("GET", "/zip", badGateway, tooMany)},
		"renamed": {
			wrong: nth("GET", "/zip",
				trouble{
					kind: "refuse", status: 301,
					header: map[string]string{"Location": "/repos/o/r/actions/artifacts/5/zip"},
				}),
		},
		"on the API host": {
			wrong: always("GET", "/zip",
				trouble{kind: "refuse", status: 302, header: map[string]string{"Location": "/storage?sig=signature"}}),
		},
		"expired": {
			wrong: always("GET", "/zip",
				trouble{kind: "refuse", status: 410, body: `{"message":"Artifact has expired"}`}), err: ErrNotFound,
			says: "has expired",
		},
		"no address": {
			wrong: always("GET", "/zip", trouble{kind: "refuse", status: 302}), says: "invalid address",
		},
		"file address": {
			wrong: always("GET", "/zip",
				trouble{kind: "refuse", status: 302, header: map[string]string{"Location": "file:///etc/passwd"}}),
			says: "invalid address",
		},
		"redirect loop": {
			wrong: always("GET", "/zip",
				trouble{
					kind: "refuse", status: 301,
					header: map[string]string{"Location": "/repos/o/r/actions/artifacts/5/zip"},
				}), says: "too many",
		},
		"storage is down": {
			wrong: always("GET", "/x", trouble{kind: "refuse", status: 500}), says: "storage returned 500",
		},
		"storage hangs": {wrong: always("GET", "/x", trouble{kind: "hang"}), err: context.DeadlineExceeded},
		"too big":       {size: maxZip + 1, says: "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeGitHub(t)
				w.stored = zipOf(t, "other.json", "no", "base.json", `{"ok":true}`)
				w.faultOf = c.wrong
				s := w.session(Options{})
				data, err := s.Download(t.Context(), Artifact{ID: 5, Size: c.size}, "base.json", 1000)
				if c.err == nil && c.says == "" {
					if err != nil || string(data) != `{"ok":true}` {
						t.Fatal(string(data), err)
					}
					return
				}
				if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) ||
					strings.Contains(err.Error(), "signature") {
					t.Error(err)
				}
			})
		})
	}
}

func TestExtract(t *testing.T) {
	link := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: "f"}
		h.SetMode(fs.ModeSymlink | 0o777)
		entry, _ := z.CreateHeader(h)
		io.WriteString(entry, "/etc/passwd")
		z.Close()
		return b.Bytes()
	}
	// The directory of the ZIP file declares a deflated megabyte as 10 bytes.
	lying := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		var packed bytes.Buffer
		inner := zip.NewWriter(&packed)
		entry, _ := inner.Create("f")
		entry.Write(make([]byte, 1<<20))
		inner.Close()
		r, _ := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
		raw, _ := r.File[0].OpenRaw()
		data, _ := io.ReadAll(raw)
		out, _ := z.CreateRaw(&zip.FileHeader{
			Name: "f", Method: zip.Deflate, CompressedSize64: uint64(len(data)), UncompressedSize64: 10,
			CRC32: crc32.ChecksumIEEE(make([]byte, 10)),
		})
		out.Write(data)
		z.Close()
		return b.Bytes()
	}
	broken := zipOf(t, "f", "content content")
	broken[35] ^= 0xff
	many := []string{}
	for i := range maxEntries + 1 {
		many = append(many, fmt.Sprint(i), "")
	}
	for name, c := range map[string]struct {
		zip  []byte
		want string // content, or part of the error after "!"
	}{
		"plain":                      {zipOf(t, "g", "no", "f", "yes"), "yes"},
		"traversal":                  {zipOf(t, "../../f", "no", "dir/f", "no", "f", "yes"), "!spellings"},
		"of another user":            {zipOf(t, "../../g", "no", "f", "yes"), "yes"},
		"twice":                      {zipOf(t, "f", "yes", "f", "no"), "!spellings"},
		"other case":                 {zipOf(t, "f", "yes", "F", "no"), "!spellings"},
		"dot":                        {zipOf(t, "./f", "no"), "!spellings"},
		"backslash":                  {zipOf(t, "f", "yes", `x\..\f`, "no"), "!spellings"},
		"folder":                     {zipOf(t, "f/", ""), "!spellings"},
		"none":                       {zipOf(t, "g", ""), "!has no"},
		"not a zip file":             {[]byte("PK"), "!open zip"},
		"truncated":                  {zipOf(t, "f", "yes")[:60], "!open zip"},
		"link":                       {link(), "!regular file"},
		"too long":                   {zipOf(t, "f", strings.Repeat("x", 1001)), "!more than"},
		"just below the limit":       {zipOf(t, "f", strings.Repeat("x", 1000)), strings.Repeat("x", 1000)},
		"zip bomb with a wrong size": {lying(), "!"},
		"corrupt":                    {broken, "!unpack"},
		"many entries":               {zipOf(t, many...), "!entries"},
	} {
		data, err := extract(c.zip, "f", 1000)
		if says, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), says) || data != nil {
				t.Errorf("%s: %q %v, want %q", name, data, err, says)
			}
		} else if err != nil || string(data) != c.want {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
}

// FuzzExtract checks that the output does not exceed the limit, and that its
// checksum is that of the only entry with the requested name.
func FuzzExtract(f *testing.F) {
	f.Add(zipOf(f, "f", "content"))
	f.Add(zipOf(f, "f", "content", "../f", "x"))
	f.Add(zipOf(f, "f", strings.Repeat("x", 5000)))
	f.Fuzz(func(t *testing.T, zipped []byte) {
		const limit = 4096
		data, err := extract(zipped, "f", limit)
		if err != nil {
			if data != nil {
				t.Error("got content despite an error")
			}
			return
		}
		if len(data) > limit {
			t.Errorf("%d bytes", len(data))
		}
		r, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, entry := range r.File {
			if entry.Name != "f" {
				continue
			}
			found++
			if sum := crc32.ChecksumIEEE(data); entry.CRC32 != 0 && entry.CRC32 != sum {
				t.Errorf("checksum %x, want %x", sum, entry.CRC32)
			}
		}
		if found != 1 {
			t.Errorf("got %d entries named f, want 1", found)
		}
	})
}
