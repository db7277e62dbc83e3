package jvmtest

// DepotMain starts one thread per iteration. Its argument selects the type of
// thread: DepotCourier selects a subclass of Thread, and DepotDelivery selects
// a task that a plain thread runs. Each courier or delivery holds 2 kB.
const (
	DepotMain     = "com.example.depot.Depot"
	DepotCourier  = "courier"
	DepotDelivery = "delivery"
)

// Depot returns a program that starts threads that never end.
func Depot() Files { return read("Console.java", "Depot.java") }
