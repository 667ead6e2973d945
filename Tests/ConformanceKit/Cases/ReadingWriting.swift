import Glibc

extension Case {
  static let reading: [Case] = [
    Case("reading past the end gives nothing, reading across it what is there") { fs in
      try fs.put("file", "0123456789")
      let file = try fs.open("file", O_RDONLY)
      try expect(file.pread(10, at: 10), is: [], "read at the end")
      try expect(file.pread(10, at: 1 << 40), is: [], "read far past the end")
      try expect(file.pread(10, at: 7), is: Array("789".utf8), "read across the end")
      try expect(file.pread(0, at: 3), is: [], "read of no bytes")
      try file.close()
    },
    Case("the position moves with read, write and seek") { fs in
      try fs.put("file", "0123456789")
      let file = try fs.open("file", O_RDWR)
      try expect(file.read(3), is: Array("012".utf8), "first read")
      try expect(file.seek(0, SEEK_CUR), is: 3, "position")
      try file.writeAll(Array("ab".utf8))
      try expect(file.read(2), is: Array("56".utf8), "read after the write")
      try expect(file.seek(-1, SEEK_END), is: 9, "position from the end")
      try expect(file.read(9), is: Array("9".utf8), "last read")
      try expect(file.seek(100, SEEK_SET), is: 100, "position past the end")
      try expect(file.read(1), is: [], "read past the end")
      try file.close()
      try expect(fs.text("file"), is: "012ab56789", "contents")
    },
    Case("files of every size around the powers of two read back whole") { fs in
      for power in [0, 1, 9, 12, 15, 16, 17, 18, 20] {
        for size in [(1 << power) - 1, 1 << power, (1 << power) + 1] {
          let bytes = pattern(size, seed: UInt64(size))
          try fs.put("file", bytes)
          try expect(fs.lstat("file").size, is: Int64(size), "size")
          try expect(fs.contents("file") == bytes, "a file of \(size) bytes reads back differently")
        }
      }
    },
    Case("eight megabytes written in odd pieces read back in other odd pieces") { fs in
      let bytes = pattern(8 << 20)
      let file = try fs.open("file", O_RDWR | O_CREAT)
      var offset = 0
      var step = 1
      while offset < bytes.count {
        let end = min(offset + step, bytes.count)
        try file.pwriteAll(Array(bytes[offset..<end]), at: Int64(offset))
        offset = end
        step = step * 7 % 262_139 + 1000
      }
      offset = 0
      step = 3
      while offset < bytes.count {
        let part = try file.pread(step, at: Int64(offset))
        try expect(!part.isEmpty && part.elementsEqual(bytes[offset..<offset + part.count]), "differs after \(offset)")
        offset += part.count
        step = step * 11 % 300_007 + 500
      }
      try file.close()
    },
    Case("a handle keeps reading after the name is gone, until it is closed") { fs in
      try fs.put("file", "still here")
      let file = try fs.open("file", O_RDWR)
      try fs.unlink("file")
      try expect(fs.exists("file"), is: false, "existence")
      try expect(file.status().links, is: 0, "links")
      try expect(file.readAll(), is: Array("still here".utf8), "contents")
      try file.pwriteAll(Array("S".utf8), at: 0)
      try file.truncate(5)
      try expect(file.pread(99, at: 0), is: Array("Still".utf8), "contents after writing")
      try file.chmod(0o600)
      try expect(file.status().mode, is: 0o600, "mode")
      try file.synchronize(dataOnly: false)
      try file.close()
      try expect(fs.names(), is: [], "the listing")
    },
    Case("an unlinked open file and a new one of its name are two") { fs in
      try fs.put("file", "old")
      let old = try fs.open("file", O_RDWR)
      try fs.unlink("file")
      try fs.put("file", "new")
      try old.pwriteAll(Array("OLD".utf8), at: 0)
      try expect(fs.text("file"), is: "new", "contents of the new file")
      try expect(old.pread(9, at: 0), is: Array("OLD".utf8), "contents of the old file")
      try old.close()
      try expect(fs.text("file"), is: "new", "contents after closing the old one")
    },
    Case("fsync and fdatasync succeed on files and folders, readers included") { fs in
      try fs.put("file", "text")
      let file = try fs.open("file", O_RDWR)
      try file.pwriteAll([1], at: 0)
      try file.synchronize(dataOnly: true)
      try file.synchronize(dataOnly: false)
      try file.close()
      let reader = try fs.open("file", O_RDONLY)
      try reader.synchronize(dataOnly: false)
      try reader.close()
      try fs.mkdir("folder")
      let folder = try fs.openFolder("folder")
      try folder.synchronize()
      try folder.close()
    },
  ]

  static let writing: [Case] = [
    Case("writing in the middle changes just that") { fs in
      var bytes = pattern(300_000)
      try fs.put("file", bytes)
      let file = try fs.open("file", O_WRONLY)
      for (offset, count) in [(0, 1), (4095, 2), (65_535, 3), (131_072, 4096), (299_990, 10)] {
        let piece = pattern(count, seed: UInt64(offset + 9))
        try file.pwriteAll(piece, at: Int64(offset))
        bytes.replaceSubrange(offset..<offset + count, with: piece)
      }
      try file.close()
      try expect(fs.contents("file") == bytes, "contents differ")
    },
    Case("writing past the end leaves zeros between") { fs in
      try fs.put("file", "start")
      let file = try fs.open("file", O_RDWR)
      try file.pwriteAll(Array("end".utf8), at: 100_000)
      try expect(file.status().size, is: 100_003, "size")
      try expect(
        file.pread(200_000, at: 0) == Array("start".utf8) + zeros(99_995) + Array("end".utf8), "contents differ")
      try file.close()
    },
    Case("writing no bytes changes nothing, past the end neither") { fs in
      try fs.put("file", "text")
      let file = try fs.open("file", O_RDWR)
      try expect(file.pwrite([], at: 1000), is: 0, "the count")
      try expect(file.status().size, is: 4, "size")
      try file.close()
    },
    Case("truncating cuts, and extending afterwards shows zeros, not the old bytes") { fs in
      for (short, long) in [(0, 10), (1, 5000), (4095, 4097), (5000, 200_000), (65_536, 65_537)] {
        let bytes = pattern(100_000)
        try fs.put("file", bytes)
        try fs.truncate("file", Int64(short))
        try expect(fs.contents("file") == Array(bytes[..<short]), "contents differ after the cut to \(short)")
        try fs.truncate("file", Int64(long))
        try expect(
          fs.contents("file") == Array(bytes[..<short]) + zeros(long - short),
          "contents differ after growing to \(long)")
      }
    },
    Case("ftruncate through one handle shows in another and in stat at once") { fs in
      try fs.put("file", pattern(10_000))
      let one = try fs.open("file", O_RDWR)
      let two = try fs.open("file", O_RDONLY)
      try expect(two.pread(10_000, at: 0).count, is: 10_000, "read before")
      try one.truncate(10)
      try expect(two.status().size, is: 10, "size")
      try expect(two.pread(10_000, at: 0) == Array(pattern(10_000)[..<10]), "contents differ")
      try one.truncate(20)
      try expect(two.pread(10_000, at: 0) == Array(pattern(10_000)[..<10]) + zeros(10), "contents differ when grown")
      try one.close()
      try two.close()
    },
    Case("O_TRUNC under an open reader leaves it a file of no bytes") { fs in
      try fs.put("file", "contents")
      let reader = try fs.open("file", O_RDONLY)
      try fs.put("file", "new")
      try expect(reader.readAll(), is: Array("new".utf8), "contents")
      try reader.close()
    },
    Case("two handles in O_APPEND mode lose nothing of each other") { fs in
      let one = try fs.open("log", O_WRONLY | O_CREAT | O_APPEND)
      let two = try fs.open("log", O_WRONLY | O_APPEND)
      var expected: [UInt8] = []
      for number in 0..<100 {
        let line = Array("line \(number) of the log\n".utf8)
        try (number % 3 == 0 ? one : two).writeAll(line)
        expected += line
      }
      try one.close()
      try two.close()
      try expect(fs.contents("log") == expected, "contents differ")
    },
    Case("O_APPEND writes at the end wherever the position is, and after a truncation by another") { fs in
      try fs.put("log", "0123456789")
      let log = try fs.open("log", O_RDWR | O_APPEND)
      _ = try log.seek(2, SEEK_SET)
      try log.writeAll(Array("a".utf8))
      try expect(log.seek(0, SEEK_CUR), is: 11, "position after the write")
      try fs.truncate("log", 3)
      try log.writeAll(Array("b".utf8))
      try expect(fs.text("log"), is: "012b", "contents")
      try log.close()
    },
    Case("who takes O_APPEND back writes where they say", needs: [.kernel, .descriptors]) { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT | O_APPEND)
      try file.writeAll(Array("hello".utf8))
      guard let descriptor = file.descriptor else { return }
      try expect(fcntl(descriptor, F_SETFL, 0), is: 0, "fcntl")
      try file.pwriteAll(Array("J".utf8), at: 0)
      try expect(fcntl(descriptor, F_SETFL, O_APPEND), is: 0, "fcntl")
      try file.pwriteAll(Array("!".utf8), at: 0)
      try file.close()
      try expect(fs.text("file"), is: "Jello!", "contents")
    },
    Case("appending threads lose and tear nothing") { fs in
      try fs.put("log")
      let writers = (0..<4).map { writer in
        DetachedThread {
          let log = try fs.open("log", O_WRONLY | O_APPEND)
          for number in 0..<100 {
            try log.writeAll(Array("\(writer) \(number) \(String(repeating: "x", count: 50))\n".utf8))
          }
          try log.close()
        }
      }
      for writer in writers { try writer.wait() }
      let lines = try fs.text("log").split(separator: "\n")
      try expect(lines.count, is: 400, "number of lines")
      for writer in 0..<4 {
        let numbers = lines.filter { $0.hasPrefix("\(writer) ") }.map { $0.split(separator: " ")[1] }
        try expect(numbers, is: (0..<100).map { Substring("\($0)") }, "lines of writer \(writer)")
      }
      try expect(lines.allSatisfy { $0.hasSuffix(String(repeating: "x", count: 50)) }, "a line is torn")
    },
    Case("threads that write disjoint blocks of one file lose nothing") { fs in
      try fs.put("file")
      let block = 10_000
      let writers = (0..<4).map { writer in
        DetachedThread {
          let file = try fs.open("file", O_WRONLY)
          for number in stride(from: writer, to: 80, by: 4) {
            try file.pwriteAll(pattern(block, seed: UInt64(number)), at: Int64(number * block))
          }
          try file.close()
        }
      }
      for writer in writers { try writer.wait() }
      let bytes = try fs.contents("file")
      try expect(bytes.count, is: 80 * block, "size")
      for number in 0..<80 {
        try expect(
          bytes[number * block..<(number + 1) * block].elementsEqual(pattern(block, seed: UInt64(number))),
          "block \(number) differs")
      }
    },
    Case("creating threads get a file each, and O_EXCL lets exactly one win") { fs in
      let makers = (0..<4).map { maker in
        DetachedThread {
          var won = 0
          for number in 0..<50 {
            try fs.put("file-\(maker)-\(number)")
            do {
              try fs.open("prize-\(number)", O_WRONLY | O_CREAT | O_EXCL).close()
              won += 1
            } catch let failure as Errno where failure.code == EEXIST {}
          }
          return won
        }
      }
      var won = 0
      for maker in makers { won += try maker.wait() }
      try expect(won, is: 50, "prizes won")
      try expect(fs.names().count, is: 250, "entries")
    },
    Case("a file of five gigabytes holds bytes at its far end", needs: .kernel) { fs in
      let file = try fs.open("large", O_RDWR | O_CREAT)
      let far: Int64 = 5 << 30
      try file.pwriteAll(Array("start".utf8), at: 0)
      try file.pwriteAll(Array("border".utf8), at: (4 << 30) - 3)
      try file.pwriteAll(Array("end".utf8), at: far)
      try expect(file.status().size, is: far + 3, "size")
      try expect(file.pread(99, at: (4 << 30) - 3)[..<6] == Array("border".utf8)[...], "the border differs")
      try expect(file.pread(99, at: far), is: Array("end".utf8), "the end")
      try expect(file.pread(10, at: 3 << 30), is: zeros(10), "the middle")
      try file.close()
      try expect(fs.lstat("large").size, is: far + 3, "size after closing")
      try fs.truncate("large", 6 << 30)
      let again = try fs.open("large", O_RDONLY)
      try expect(again.pread(8, at: far), is: Array("end".utf8) + zeros(5), "the end after growing")
      try again.close()
    },
    Case("bytes survive closing and opening, and overwriting with fewer leaves the rest") { fs in
      try fs.put("file", "a longer text")
      let file = try fs.open("file", O_WRONLY)
      try file.writeAll(Array("A LON".utf8))
      try file.close()
      try expect(fs.text("file"), is: "A LONger text", "contents")
    },
  ]
}
