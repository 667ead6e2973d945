import Glibc

extension Case {
  static let locking: [Case] = [
    Case("flock excludes another process, and closing lets go", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      let file = try fs.open("file", O_RDWR)
      try expect(flock(file.descriptor!, LOCK_EX | LOCK_NB), is: 0, "our lock")
      try expect(helper.ask("flock ex"), is: "EAGAIN", "their lock")
      try expect(helper.ask("flock sh"), is: "EAGAIN", "their shared lock")
      try file.close()
      try expect(helper.ask("flock ex"), is: "ok", "their lock after closing")
      try helper.end()
    },
    Case("shared flocks go together, an exclusive one waits for all", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      let file = try fs.open("file", O_RDWR)
      try expect(flock(file.descriptor!, LOCK_SH | LOCK_NB), is: 0, "our shared lock")
      try expect(helper.ask("flock sh"), is: "ok", "their shared lock")
      try expect(flock(file.descriptor!, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "we got it exclusively")
      try expect(helper.ask("flock un"), is: "ok", "their unlock")
      try expect(flock(file.descriptor!, LOCK_EX | LOCK_NB), is: 0, "our exclusive lock")
      try file.close()
      try helper.end()
    },
    Case("flock belongs to the open file, also within one process", needs: .descriptors) { fs in
      try fs.put("file")
      let one = try fs.open("file", O_RDWR)
      let two = try fs.open("file", O_RDWR)
      try expect(flock(one.descriptor!, LOCK_EX | LOCK_NB), is: 0, "the first lock")
      try expect(flock(two.descriptor!, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "both got it")
      let duplicate = dup(one.descriptor!)
      try one.close()
      try expect(flock(two.descriptor!, LOCK_EX | LOCK_NB) == -1, "a duplicate did not keep the lock")
      Glibc.close(duplicate)
      try expect(flock(two.descriptor!, LOCK_EX | LOCK_NB), is: 0, "the lock after the last close")
      try two.close()
    },
    Case("a waiting flock is granted when the holder lets go", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      try expect(helper.ask("flock ex"), is: "ok", "their lock")
      let waiter = DetachedThread {
        let file = try fs.open("file", O_RDWR)
        let result = flock(file.descriptor!, LOCK_EX)
        try file.close()
        return result
      }
      try expect(!waiter.ended(within: 0.2), "the lock was granted twice")
      try expect(helper.ask("flock un"), is: "ok", "their unlock")
      try expect(waiter.wait(), is: 0, "our lock")
      try helper.end()
    },
    Case("fcntl locks exclude by byte ranges, and tell who holds them", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      let file = try fs.open("file", O_RDWR)
      try expect(setLock(file, F_WRLCK, 100, 50), is: 0, "our lock")
      try expect(helper.ask("set wr 140 20"), is: "EAGAIN", "their overlapping lock")
      try expect(helper.ask("set rd 100 1"), is: "EAGAIN", "their reading lock")
      try expect(helper.ask("set wr 150 20"), is: "ok", "their lock beside")
      try expect(helper.ask("get wr 0 1000"), is: "held \(getpid()) 100 50", "the holder")
      try expect(setLock(file, F_UNLCK, 100, 20), is: 0, "unlocking a part")
      try expect(helper.ask("set wr 100 20"), is: "ok", "their lock of the part")
      try expect(helper.ask("set wr 120 10"), is: "EAGAIN", "their lock of the rest")
      try file.close()
      try expect(helper.ask("set wr 120 10"), is: "ok", "their lock after closing")
      try helper.end()
    },
    Case("fcntl locks go when any handle of the process is closed, or it ends", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      let file = try fs.open("file", O_RDWR)
      let other = try fs.open("file", O_RDONLY)
      try expect(setLock(file, F_WRLCK, 0, 0), is: 0, "our lock")
      try other.close()
      try expect(helper.ask("set wr 0 0"), is: "ok", "their lock after one of our handles closed")
      try expect(setLock(file, F_RDLCK, 5, 1), is: -1, "our lock while they hold it")
      try helper.end()
      try expect(setLock(file, F_RDLCK, 5, 1), is: 0, "our lock after they ended")
      try file.close()
    },
    Case("a waiting fcntl lock is granted when the holder lets go", needs: [.descriptors, .helper]) { fs in
      let helper = try LockHelper(on: fs, "file")
      try expect(helper.ask("set wr 0 10"), is: "ok", "their lock")
      let waiter = DetachedThread {
        let file = try fs.open("file", O_RDWR)
        let result = setLock(file, F_WRLCK, 0, 5, waiting: true)
        try file.close()
        return result
      }
      try expect(!waiter.ended(within: 0.2), "the lock was granted twice")
      try expect(helper.ask("set un 0 10"), is: "ok", "their unlock")
      try expect(waiter.wait(), is: 0, "our lock")
      try helper.end()
    },
    Case("locks of an open file description exclude each other within one process", needs: .descriptors) { fs in
      try fs.put("file")
      let one = try fs.open("file", O_RDWR)
      let two = try fs.open("file", O_RDWR)
      let setOwn: Int32 = 37  // F_OFD_SETLK
      try expect(setLock(one, F_WRLCK, 0, 10, command: setOwn), is: 0, "the first lock")
      try expect(setLock(two, F_WRLCK, 5, 10, command: setOwn), is: -1, "the second lock")
      try expect(setLock(two, F_WRLCK, 10, 10, command: setOwn), is: 0, "the lock beside")
      try one.close()
      try expect(setLock(two, F_WRLCK, 0, 10, command: setOwn), is: 0, "the lock after closing")
      try two.close()
    },
  ]
}

/// `fcntl` with `F_SETLK`, `F_SETLKW` or the command given: 0 or -1.
@Sendable private func setLock(
  _ file: any OpenFile, _ type: Int32, _ start: Int, _ length: Int, waiting: Bool = false, command: Int32? = nil
) -> Int32 {
  var lock = Glibc.flock()
  lock.l_type = Int16(type)
  lock.l_whence = Int16(SEEK_SET)
  lock.l_start = start
  lock.l_len = length
  return fcntl(file.descriptor!, command ?? (waiting ? F_SETLKW : F_SETLK), &lock)
}
