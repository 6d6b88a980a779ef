/**
 * The process from which programs of Python are forked: it has loaded what all of them need, so
 * that a run takes a fork in place of a start of Python. It never runs code of a program itself,
 * not even compiles it, and never sees what one writes: for each run it forks a process that
 * collects that, which forks the program's. This one confines itself before its program begins, as
 * one that was started for it would, and takes its limits of processor and memory.
 *
 * Requests come on file descriptor 3, a line of JSON each: the name of the function, or null. The
 * program and its input lie in the folder by then. An answer is a line of JSON and the four outputs
 * that it has the lengths of: standard output, standard error, and what the program's process wrote
 * to its own file descriptors 3 and 5; one without outputs comes first, and says that it has begun,
 * or says what this machine lacks ("problem"). The line "end" ends the program that runs.
 */
export const pythonForkServer: string = `
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
OUTPUTS = (1, 2, 3, 5)


def serve(most_output, cpu_seconds, data_bytes, has_numpy):
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
    most = (most_output, 65536, most_output, 64)
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

    def answer(head, *outputs):
        data = b"".join((json.dumps({**head, "lengths": list(map(len, outputs))}).encode(), b"\\n", *outputs))
        data = memoryview(data)
        while data:
            data = data[os.write(3, data):]

    def folder_now():
        """What of the scratch folder a program could leave to the next one, but for times."""
        try:
            attributes = os.listxattr(FOLDER)
        except OSError:
            attributes = []
        return os.stat(FOLDER).st_mode, attributes, os.listdir(FOLDER)

    before, times = folder_now(), os.stat(FOLDER)

    def is_clean():
        try:
            os.utime(FOLDER, ns=(times.st_atime_ns, times.st_mtime_ns))
            return folder_now() == before
        except OSError:
            return False

    def dies_with(parent):
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    def limit(which, wanted):
        hard = resource.getrlimit(which)[1]
        least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (least, least))

    def become_program(writing):
        for at, place in zip(writing, OUTPUTS):
            os.dup2(at, place)
        os.dup2(os.open(os.path.join(CODE, "stdin.txt"), os.O_RDONLY), 0)
        os.closerange(4, 5)
        os.closerange(6, 256)
        limit(resource.RLIMIT_CPU, cpu_seconds)
        limit(resource.RLIMIT_DATA, data_bytes)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        if numpy is not None:
            # As that of Python, its state is not the next program's, too.
            with contextlib.suppress(Exception):
                numpy.random.seed()

    def hear_end(child):
        receive()
        if received.startswith(b"end"):
            next_line()
            os.kill(child, signal.SIGKILL)

    def read_all(child, reading):
        """What the program writes, up to its end; and whether that was too much."""
        kept, sizes, is_too_much = [[] for _ in reading], [0] * len(reading), False
        poll = select.poll()
        for at in (3, *reading):
            poll.register(at, select.POLLIN)
        left = set(reading)
        while left:
            for at, _ in poll.poll():
                if at == 3:
                    hear_end(child)
                    continue
                chunk = os.read(at, 65536)
                if not chunk:
                    poll.unregister(at)
                    left.discard(at)
                    continue
                which = reading.index(at)
                room = most[which] - sizes[which]
                sizes[which] += len(chunk)
                if room > 0:
                    kept[which].append(chunk[:room])
                if sizes[which] > most[which] and which in (0, 2):
                    is_too_much = True
                    os.kill(child, signal.SIGKILL)
        return [b"".join(parts) for parts in kept], is_too_much

    def end_of(child):
        """It may go on without its outputs."""
        poll, ms = select.poll(), 1
        poll.register(3, select.POLLIN)
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid != 0:
                return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            if poll.poll(ms):
                hear_end(child)
            ms = min(2 * ms, 50)

    def collect():
        """Returns in the program's process; the one that collects ends here."""
        collector, started = os.getpid(), time.monotonic()
        try:
            pipes = [os.pipe() for _ in OUTPUTS]
            child = os.fork()
        except OSError as error:
            answer({"problem": str(error)})
            os._exit(0)
        reading, writing = zip(*pipes)
        if child == 0:
            dies_with(collector)
            return become_program(writing)
        for at in writing:
            os.close(at)
        outputs, is_too_much = read_all(child, reading)
        code = end_of(child)
        ms = (time.monotonic() - started) * 1000
        answer({"code": code, "ms": ms, "isTooMuch": is_too_much, "isClean": is_clean()}, *outputs)
        os._exit(0)

    answer({})
    while True:
        line = next_line()
        # It came after the end of the run.
        if line == b"end":
            continue
        wanted = json.loads(line)
        try:
            child = os.fork()
        except OSError as error:
            answer({"problem": str(error)})
            continue
        if child == 0:
            dies_with(server)
            collect()
            return wanted["name"]
        if os.waitpid(child, 0)[1] != 0:
            os._exit(1)
`;
