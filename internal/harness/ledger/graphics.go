package ledger

import (
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// hasGraphics reports whether a breakdown contains graphics memory. The rows
// come from the memtrack HAL and from the mappings of the GPU driver; emulators
// have neither (frameworks/base core/jni/android_os_Debug.cpp,
// read_memtrack_memory).
func hasGraphics(b detector.Breakdown) bool {
	for _, v := range []detector.Amount{b.EGL, b.GL, b.OtherMtrack, b.GfxDev, b.Dim[detector.Graphics]} {
		if v.Known && v.N > 0 {
			return true
		}
	}
	return false
}

// graphicsWarnings warns that a pass does not cover graphics memory, if the
// device reports none even for processes with windows.
func (p *Part) graphicsWarnings(processes []record.Process) []string {
	windows := false
	for _, a := range p.accounts {
		if a.objects["ViewRootImpl"].Max > 0 {
			windows = true
		}
		if a.graphics {
			return nil
		}
	}
	passes := slices.ContainsFunc(processes, func(r record.Process) bool {
		return r.Device == p.header.Device && (r.Gate == detector.Pass || r.Gate == detector.Settled)
	})
	if !windows || !passes {
		return nil
	}
	return []string{"device " + p.header.Device +
		" reports no graphics memory: leaks of textures and graphics buffers cannot be found on it"}
}
