package jvmtest

// DepotMain takes one argument, the kind of threads to start, one per
// iteration: a DepotCourier is a subclass of Thread, and a DepotDelivery is a
// task that a plain thread runs. Each of them holds 2 kB.
const (
	DepotMain     = "com.example.depot.Depot"
	DepotCourier  = "courier"
	DepotDelivery = "delivery"
)

// Depot returns a program that starts threads that never end.
func Depot() Files { return read("Console.java", "Depot.java") }
