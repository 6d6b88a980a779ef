/**
 * The process from which programs of Python are forked: it has loaded what all of them need, so
 * that a run takes a fork in place of a start of Python. It never runs code of a
 * program itself, not even compiles it. The process that it forks for a run confines itself before
 * it does, as one that was started for it would; the limits of the shell hold for it, too.
 *
 * Requests come on file descriptor 3, a line of JSON each: the name of the function, or null. The
 * program and its input lie in the folder by then. An answer is a line of JSON and the four outputs
 * that it has the lengths of: standard output, standard error, and what the program's process wrote
 * to its own file descriptors 3 and 5; one without outputs comes first, and says that it has begun.
 * The line "end" ends the program that runs.
 */
export const pythonForkServer: string = `
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
OUTPUTS = (1, 2, 3, 5)
MOST_ERRORS, MOST_REACHED = 65536, 64


def serve(most_output, cpu_seconds, has_numpy):
    """Answers requests for ever. Returns in the process of each run: the name of its function."""
    import ctypes, gc, resource, select, time
    prctl = ctypes.CDLL(None).prctl
    # Otherwise programs, whose user is ours, could write to our memory.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    all_known()
    numpy = None
    if has_numpy:
        with contextlib.suppress(Exception):
            import numpy.random
    begun_with = os.stat(FOLDER).st_mode
    server, received = os.getpid(), b""
    gc.collect()
    # The processes share what they do not write to, and collections would.
    gc.freeze()
    os.write(5, b"ready")

    def receive():
        nonlocal received
        more = os.read(3, 65536)
        if not more:
            os._exit(0)
        received += more

    def next_line():
        nonlocal received
        while b"\\n" not in received:
            receive()
        line, received = received.split(b"\\n", 1)
        return line

    def send(data):
        data = memoryview(data)
        while data:
            data = data[os.write(3, data):]

    def become_program(writing):
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        for at, place in zip(writing, OUTPUTS):
            os.dup2(at, place)
        os.dup2(os.open(os.path.join(CODE, "stdin.txt"), os.O_RDONLY), 0)
        os.closerange(4, 5)
        os.closerange(6, 256)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        seconds = cpu_seconds if hard == resource.RLIM_INFINITY else min(cpu_seconds, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        if numpy is not None:
            # As that of Python, its state is not the next program's, too.
            with contextlib.suppress(Exception):
                numpy.random.seed()

    def collect(child, reading):
        """What the program writes, up to its end; and whether that was too much."""
        most = dict(zip(reading, (most_output, MOST_ERRORS, most_output, MOST_REACHED)))
        kept, sizes, is_too_much = {at: [] for at in reading}, dict.fromkeys(reading, 0), False
        poll = select.poll()
        for at in (3, *reading):
            poll.register(at, select.POLLIN)
        left = set(reading)
        while left:
            for at, _ in poll.poll():
                if at == 3:
                    receive()
                    if received.startswith(b"end"):
                        next_line()
                        os.kill(child, signal.SIGKILL)
                    continue
                chunk = os.read(at, 65536)
                if not chunk:
                    poll.unregister(at)
                    left.discard(at)
                    continue
                room = most[at] - sizes[at]
                sizes[at] += len(chunk)
                if room > 0:
                    kept[at].append(chunk[:room])
                if sizes[at] > most[at] and most[at] == most_output:
                    is_too_much = True
                    os.kill(child, signal.SIGKILL)
        return [b"".join(kept[at]) for at in reading], is_too_much

    def is_clean():
        """Whether the program left nothing for the next one."""
        try:
            return os.stat(FOLDER).st_mode == begun_with and not os.listdir(FOLDER)
        except OSError:
            return False

    def answer(head, *outputs):
        send(b"".join((json.dumps({**head, "lengths": list(map(len, outputs))}).encode(), b"\\n", *outputs)))

    answer({"code": 0, "ms": 0, "isTooMuch": False, "isClean": True})
    while True:
        line = next_line()
        # It came after the end of the run.
        if line == b"end":
            continue
        wanted = json.loads(line)
        pipes = [os.pipe() for _ in OUTPUTS]
        reading, writing = zip(*pipes)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            become_program(writing)
            return wanted["name"]
        for at in writing:
            os.close(at)
        outputs, is_too_much = collect(child, reading)
        for at in reading:
            os.close(at)
        status = os.waitpid(child, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        ms = (time.monotonic() - started) * 1000
        answer({"code": code, "ms": ms, "isTooMuch": is_too_much, "isClean": is_clean()}, *outputs)
`;
