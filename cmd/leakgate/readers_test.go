package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hproftest"
)

// readers lists common leaks of an app. The report of each leak was shown to
// people who knew neither the app nor this program, with four questions: what
// leaks, who holds it, which line to change, and how much it costs.
// NAME.answer.md contains the answers.
var readers = []struct {
	name  string
	phone hproftest.Phone
	make  func(h *hproftest.Heap)
}{
	{"listener", hproftest.Phone{SDK: 34}, func(h *hproftest.Heap) {
		cart := h.Activity("com.shop.cart.CartActivity", hproftest.Destroyed)
		h.AddView(cart.Content, h.New(h.Class("android.widget.ImageView"), nil))
		listener := h.New(h.Declare("com.shop.cart.CartActivity$1", nil, "object this$0"),
			hproftest.Fields{"this$0": cart.Ref})
		bus := h.Declare("com.shop.core.EventBus", nil, "object listeners", "static object INSTANCE")
		h.SetStatic(bus, "INSTANCE",
			h.New(bus, hproftest.Fields{"listeners": h.ArrayList(h.String("main"), listener).Ref}))
	}},
	{"fragment", hproftest.Phone{SDK: 33}, func(h *hproftest.Heap) {
		h.Activity("com.shop.detail.DetailActivity", hproftest.Attached)
		page := h.Fragment("com.shop.detail.PhotoFragment",
			hproftest.Fragment{State: hproftest.Destroyed, Tag: "photos"})
		adapter := h.New(h.Declare("com.shop.detail.PhotoAdapter", nil, "object pages"),
			hproftest.Fields{"pages": h.HashMap(h.String("cover"), page)})
		app := h.Declare("com.shop.detail.PhotoCache", nil, "static object sAdapter")
		h.SetStatic(app, "sAdapter", adapter)
	}},
	{"thread", hproftest.Phone{SDK: 31}, func(h *hproftest.Heap) {
		checkout := h.Activity("com.shop.checkout.CheckoutActivity", hproftest.Destroyed)
		job := h.New(h.Declare("com.shop.checkout.CheckoutActivity$UploadJob", nil, "object this$0", "object receipt"),
			hproftest.Fields{"this$0": checkout.Ref, "receipt": h.Bytes(make([]byte, 300_000))})
		h.Set(h.Thread("upload-1").Ref, "target", job)
	}},
	{"service", hproftest.Phone{SDK: 30}, func(h *hproftest.Heap) {
		sync := h.Service("com.shop.sync.SyncService", hproftest.Destroyed)
		manager := h.Declare("com.shop.sync.SyncManager", nil, "object service", "static object sInstance")
		h.SetStatic(manager, "sInstance", h.New(manager, hproftest.Fields{"service": sync}))
	}},
	{"viewmodel", hproftest.Phone{SDK: 35}, func(h *hproftest.Heap) {
		h.Declare("androidx.lifecycle.ViewModel", nil, "abstract", "boolean mCleared", "object mBagOfTags")
		model := h.New(h.Declare("com.shop.cart.CartViewModel", h.Class("androidx.lifecycle.ViewModel"),
			"object items"),
			hproftest.Fields{"mCleared": true, "items": h.Bytes(make([]byte, 2_000_000))})
		callback := h.New(h.Declare("com.shop.cart.CartViewModel$$ExternalSyntheticLambda0", nil, "object f$0"),
			hproftest.Fields{"f$0": model})
		repository := h.Declare("com.shop.data.PriceRepository", nil, "object observers", "static object INSTANCE")
		h.SetStatic(repository, "INSTANCE",
			h.New(repository, hproftest.Fields{"observers": h.LinkedHashMap(h.String("prices"), callback)}))
	}},
	{"pile", hproftest.Phone{SDK: 34}, func(h *hproftest.Heap) {
		h.Activity("com.shop.MainActivity", hproftest.Attached)
		image := h.Declare("com.shop.image.Thumbnail", nil, "object pixels", "object url")
		var all []hproftest.Ref
		for i := range 400 {
			url := h.String(fmt.Sprintf("https://img.shop.example/%d.png", i))
			all = append(all, h.New(image, hproftest.Fields{"pixels": h.Bytes(make([]byte, 20_000)), "url": url}))
		}
		cache := h.Declare("com.shop.image.ThumbnailStore", nil, "object thumbnails", "static object instance")
		h.SetStatic(cache, "instance", h.New(cache, hproftest.Fields{"thumbnails": h.ArrayList(all...).Ref}))
	}},
}

// TestReaders compares the current reports with those that the readers were
// shown.
func TestReaders(t *testing.T) {
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			r.phone.Process = "com.shop"
			h := hproftest.Android(r.phone)
			r.make(h)
			data, _, err := h.Dump(hproftest.Form{})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "shop.hprof")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errOut := ran(t, "analyze", path, "--top", "5")
			if code != exitOK || errOut != "" {
				t.Fatalf("exit %d, %s", code, errOut)
			}
			golden(t, filepath.Join("testdata", "readers", r.name+".txt"), out)
			answer, err := os.ReadFile(filepath.Join("testdata", "readers", r.name+".answer.md"))
			if err != nil || !bytes.Contains(answer, []byte("Which line")) ||
				!strings.Contains(string(answer), "How much") {
				t.Errorf("the answers of the readers are missing: %v", err)
			}
		})
	}
}
