package androidsim

import "github.com/leakgate/leakgate/internal/androidtext"

// heap returns the statistics of an allocator with kb kB in use.
func heap(kb int64) androidtext.Heap {
	size := kb + kb/4 + 512
	return androidtext.Heap{Size: size, Alloc: kb - kb/16, Free: size - kb + kb/16}
}

// mbPerActivity is the Java memory of a leaked Activity, in MB.
const mbPerActivity = 2

// meminfo returns the values that dumpsys meminfo prints for the process. A
// Java leak appears as additional Activities.
func (v view) meminfo(m memory) *androidtext.Meminfo {
	grown := func(r androidtext.Row) int64 { return m.rows[r].privateDirty + m.rows[r].swap }
	n := v.counts(m)
	out := &androidtext.Meminfo{
		API: v.api, PID: v.pid, Name: v.name, Native: v.native, Rows: m.table(),
		NativeHeap: heap(grown(androidtext.NativeHeap)), JavaHeap: heap(grown(androidtext.DalvikHeap)),
		Objects: androidtext.Objects{
			Views: n.views, ViewRoots: n.roots, AppContexts: 4 + n.activities, Activities: n.activities,
			Assets: 12, LocalBinders: 21, ProxyBinders: 38, ParcelKB: 11, Parcels: 46, DeathRecipients: 1, Sockets: 2,
		},
		Allocations: []androidtext.Allocation{
			{Name: "Other (malloced):", Count: 479, KB: 44}, {Name: "Other (nonmalloced):", Count: 213, KB: 126},
			{Name: "Bitmap (malloced):", Count: 63, KB: 2729},
		},
		SQL: androidtext.SQL{MemoryUsed: 462, CacheOverflow: 83, LargestAllocation: 62},
		Databases: []androidtext.Database{{
			PageSize: 4, Size: 48, Lookaside: 37, Cache: "11/22/4",
			Name: "/data/user/0/" + v.pkg() + "/databases/sample.db",
		}},
	}
	detail := func(name string, u usage) {
		out.Details = append(out.Details, androidtext.Detail{Name: name, Memory: u.text()})
	}
	dalvik := m.rows[androidtext.DalvikHeap].cut(8)
	for _, more := range dalvik[3:] {
		dalvik[0] = dalvik[0].plus(more)
	}
	other := m.rows[androidtext.DalvikOther].cut(2)
	detail(".Heap", dalvik[0])
	detail(".LOS", dalvik[1])
	detail(".Zygote", dalvik[2])
	detail(".LinearAlloc", other[0])
	detail(".GC", other[1])
	detail(".Boot art", m.rows[androidtext.ArtMmap])
	return out
}
