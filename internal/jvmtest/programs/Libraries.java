package com.example.libraries;

import com.example.stage.Console;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.eventbus.EventBus;
import com.google.common.eventbus.Subscribe;
import io.reactivex.rxjava3.core.Observable;
import io.reactivex.rxjava3.disposables.CompositeDisposable;
import io.reactivex.rxjava3.functions.Consumer;
import io.reactivex.rxjava3.subjects.PublishSubject;
import java.util.concurrent.TimeUnit;
import kotlin.Unit;
import kotlin.coroutines.Continuation;
import kotlin.jvm.functions.Function1;
import kotlin.jvm.functions.Function2;
import kotlinx.coroutines.BuildersKt;
import kotlinx.coroutines.CoroutineScope;
import kotlinx.coroutines.CoroutineStart;
import kotlinx.coroutines.DelayKt;
import kotlinx.coroutines.Dispatchers;
import kotlinx.coroutines.GlobalScope;
import kotlinx.coroutines.Job;
import kotlinx.coroutines.JobKt;

/** For each name, a leak through a library. The payload is 20 000 bytes per iteration. */
public final class Libraries {
    static final int PAYLOAD = 20_000;
    static int iteration;

    public static void main(String[] args) throws Exception {
        Console.Work work = work(args[0]);
        Console.serve(() -> {
            iteration++;
            work.once();
        });
        // The threads of coroutine schedulers are daemons, and so are those of RxJava.
        System.exit(0);
    }

    private static Console.Work work(String name) {
        switch (name) {
            case "rx-disposables":
                return () -> CartViewModel.DISPOSABLES.add(CartViewModel.never().subscribe(new Screen()));
            case "rx-subject":
                return () -> Prices.CHANGES.subscribe(new Screen());
            case "rx-interval":
                return () -> Observable.interval(1, TimeUnit.HOURS).subscribe(new Clock.Tick());
            case "coroutine-children":
                return () -> JobKt.Job(Screens.SCOPE).invokeOnCompletion(new Screens.Cleanup());
            case "coroutine-delay":
                return () -> BuildersKt.launch(GlobalScope.INSTANCE, Dispatchers.getDefault(), CoroutineStart.DEFAULT, new Retry.Upload());
            case "guava-cache":
                return () -> Users.CACHE.put("user " + iteration, new Screen());
            case "guava-event-bus":
                return () -> Bus.BUS.register(new Screen());
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** A screen of an app, with the callbacks that others call. */
    public static final class Screen implements Consumer<Object> {
        final byte[] image = new byte[PAYLOAD];

        @Override
        public void accept(Object o) {}

        @Subscribe
        public void on(String event) {}
    }

    static final class CartViewModel {
        static final CompositeDisposable DISPOSABLES = new CompositeDisposable();

        static Observable<Object> never() {
            return PublishSubject.create();
        }
    }

    static final class Prices {
        static final PublishSubject<Object> CHANGES = PublishSubject.create();
    }

    static final class Clock {
        static final class Tick implements Consumer<Object> {
            final byte[] image = new byte[PAYLOAD];

            @Override
            public void accept(Object o) {}
        }
    }

    static final class Screens {
        static final Job SCOPE = JobKt.Job((Job) null);

        static final class Cleanup implements Function1<Throwable, Unit> {
            final byte[] image = new byte[PAYLOAD];

            @Override
            public Unit invoke(Throwable cause) {
                return Unit.INSTANCE;
            }
        }
    }

    static final class Retry {
        static final class Upload implements Function2<CoroutineScope, Continuation<? super Unit>, Object> {
            final byte[] image = new byte[PAYLOAD];

            @Override
            public Object invoke(CoroutineScope scope, Continuation<? super Unit> rest) {
                return DelayKt.delay(3_600_000, new Waiting(this, rest));
            }
        }

        /** The state machine that kotlinc generates for a suspend function holds its receiver like this. */
        static final class Waiting implements Continuation<Unit> {
            final Upload upload;
            final Continuation<? super Unit> rest;

            Waiting(Upload upload, Continuation<? super Unit> rest) {
                this.upload = upload;
                this.rest = rest;
            }

            @Override
            public kotlin.coroutines.CoroutineContext getContext() {
                return rest.getContext();
            }

            @Override
            public void resumeWith(Object result) {
                rest.resumeWith(result);
            }
        }
    }

    static final class Users {
        static final Cache<String, Screen> CACHE = CacheBuilder.newBuilder().build();
    }

    static final class Bus {
        static final EventBus BUS = new EventBus();
    }
}
