@file:Suppress("UNUSED")
package com.shop

import kotlin.properties.Delegates

/* comment /* nested class Fake { val fake = 1 } */ val fake2 = 2 */
val topLevel = "a ${ listOf("}", "\"").joinToString { val inner = it; "x$inner" } } class Fake3 { val fake3 = 1"
private var counter = 0
val raw = """
  class FakeRaw { val fakeRaw = 1 }
  ${ "val x" + """nested "quotes" """ }
  """"
val String.initial get() = this[0]
val <T> List<T>.second: T get() = this[1]
val lazyTop by lazy { 1 }

annotation class Named(val value: String)
annotation class Inject

fun interface Listener { fun on(x: Int) }

interface Source<T : Any> { val abstractOne: T
    companion object { const val LIMIT = 3; val shared = ArrayList<Int>() } }

class Plain
class Second(val a: Int, private var b: String = "x", c: Int = run { val hidden = 3; hidden }) : Base(a)
open class Base(protected open val base: Int)

class Annotated @Inject constructor(@field:Named("a") private val named: Map<String, (Int) -> Unit>, vararg val rest: Int)
class OnLines
@Inject
internal constructor(
    val one: Int, // val no: Int
    @Named("val two: Int") val two: Int?,
) : Base(one),
    Source<String>
{ override val abstractOne = "x"; lateinit var late: String }

class Generic<K, V : Comparable<V>>(val key: K) where K : Any {
    val holder: MutableMap<K, List<V>> = HashMap<K, List<V>>()
    var cmp = 1 < 2
    val `quoted name` = 3
    val observed: Int by Delegates.observable(0) { _, _, _ -> val z = 1 }
    private val listener = object : Listener { val captured = ArrayList<Int>(); override fun on(x: Int) { val local = x } }
    fun expression() = if (cmp) object : Runnable { override fun run() {} } else null
    val kclass = Generic::class
    inner class Inner(val depth: Int) { val innerField = 1; inner class Deeper { val deep = 2 } }
    init { val initLocal = 1 }
    var accessed: Int = 0
        get() { val g = field; return g }
        private set(value) { val s = value; field = s }
    companion object Factory : Base(3) {
        @JvmField val jvmField = 1
        const val CONST = "c"
        private val cache = HashMap<String, Any>()
        class InFactory { val inFactory = 1 }
    }
}

object Registry { val listeners = ArrayList<Listener>(); lateinit var current: Any
    object Nested { var nested = 1 } }
data object Single { val s = 1 }

enum class Color(val rgb: Int) : Runnable {
    RED(1) { val redOnly = 1; override fun run() { val r = 1 } },
    @Named("x") GREEN(2) { override fun run() {} }, BLUE(3);
    override fun run() {}
    val mixed = rgb + 1
    companion object { val byRgb = values().associateBy { it.rgb } }
}
enum class Small { A, B }

sealed class State { data class Loaded(val items: List<String>) : State()
    object Empty : State()
    data class Failed(val error: Throwable, val retry: () -> Unit = {}) : State() { val message = error.message }
    class Bodyless : State()
    private val after = 1 }

@JvmInline value class Id(val raw: Long)
class Delegating(private val d: Runnable) : Runnable by d { val own = 1 }
class Delegating2(d: Runnable) : Runnable by
    d
{ val own2 = 1 }
class Defaults(val f: (Int) -> Int = fun(x: Int): Int { val q = x; return q }, val g: Int = if (1 < 2) 3 else 4, val h: List<Int> = listOf<Int>())
class T1 : Base(1)
@Inject class T2 { val t2 = 1 }
class T3 : Base(1); class T4 { val t4 = 1 }
private class T5 private constructor(val t5: Int) { constructor() : this(1) { val t5local = 1 } }
class T6<out T>(val t6: T) {
    val `val` = 1; val a1 = 1; val b1 = 'x'; val c1 = '"'; val d1 = '\''; var e1 = "\"val f1"
    private val ints = intArrayOf(1, 2)
    val nested = mutableMapOf<String, MutableList<() -> Unit>>().apply { val n = 1 }
    val x get() = 1
    val whenV = when (val w = ints.size) { 1 -> { val ww = 1; ww } else -> 2 }
    tailrec fun <A : Any> gen(a: A, l: (A) -> Unit = { val lg = 1 }): A where A : Comparable<A> = if (l == null) a else gen(a, l)
    protected val last = 9
}
fun main() { val localMain = 1; class Local { val inLocal = 1 }; println(Local()) }
