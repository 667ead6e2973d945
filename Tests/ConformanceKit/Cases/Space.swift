import Glibc

let keepSize: Int32 = 1  // FALLOC_FL_KEEP_SIZE
let punchHole: Int32 = 2 | 1  // FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
let zeroRange: Int32 = 16  // FALLOC_FL_ZERO_RANGE
let seekData: Int32 = 3
let seekHole: Int32 = 4

private let mebi: Int64 = 1 << 20

extension Case {
  static let sparseness: [Case] = [
    Case("a sparse file takes little room and reads as zeros between") { fs in
      let file = try fs.open("sparse", O_RDWR | O_CREAT)
      try file.truncate(100 * mebi)
      try file.pwriteAll(pattern(Int(mebi)), at: 50 * mebi)
      try file.synchronize(dataOnly: false)
      let status = try file.status()
      try expect(status.size, is: 100 * mebi, "size")
      try expect(status.blocks * 512 < 10 * mebi, "it takes \(status.blocks) blocks of 512")
      try expect(file.pread(100_000, at: 20 * mebi) == zeros(100_000), "the hole holds other than zeros")
      try expect(file.pread(Int(mebi), at: 50 * mebi) == pattern(Int(mebi)), "the data differ")
      try file.close()
      try expect(fs.lstat("sparse").blocks * 512 < 10 * mebi, "it takes more after closing")
    },
    Case("SEEK_DATA and SEEK_HOLE find the borders of data") { fs in
      let file = try fs.open("sparse", O_RDWR | O_CREAT)
      try file.truncate(16 * mebi)
      try file.pwriteAll(pattern(Int(mebi)), at: 2 * mebi)
      try file.pwriteAll(pattern(Int(2 * mebi)), at: 8 * mebi)
      for closed in [false, true] {
        let file = closed ? try fs.open("sparse", O_RDONLY) : file
        try expect(file.seek(0, seekData), is: 2 * mebi, "first data")
        try expect(file.seek(2 * mebi + 5, seekData), is: 2 * mebi + 5, "data inside data")
        try expect(file.seek(0, seekHole), is: 0, "hole inside a hole")
        try expect(file.seek(2 * mebi, seekHole), is: 3 * mebi, "end of the first data")
        try expect(file.seek(3 * mebi, seekData), is: 8 * mebi, "second data")
        try expect(file.seek(9 * mebi, seekHole), is: 10 * mebi, "end of the second data")
        try expect(ENXIO) { try file.seek(10 * mebi, seekData) }
        try expect(ENXIO) { try file.seek(16 * mebi, seekData) }
        try expect(ENXIO) { try file.seek(16 * mebi, seekHole) }
        try file.close()
      }
    },
    Case("a file without holes has its hole at the end, an empty one fails with ENXIO") { fs in
      try fs.put("file", pattern(300_000))
      let file = try fs.open("file", O_RDWR)
      try expect(file.seek(0, seekHole), is: 300_000, "hole")
      try expect(file.seek(299_999, seekData), is: 299_999, "data at the end")
      try expect(file.seek(0, SEEK_CUR), is: 299_999, "position")
      try expect(ENXIO) { try file.seek(300_000, seekData) }
      try file.truncate(0)
      try expect(ENXIO) { try file.seek(0, seekData) }
      try expect(ENXIO) { try file.seek(0, seekHole) }
      try file.close()
    },
    Case("growing by truncate makes a hole") { fs in
      try fs.put("file", pattern(Int(mebi)))
      try fs.truncate("file", 3 * mebi)
      let file = try fs.open("file", O_RDONLY)
      try expect(file.seek(0, seekHole), is: mebi, "hole")
      try expect(ENXIO) { try file.seek(mebi, seekData) }
      try file.close()
    },
    Case("a thousand scattered writes into a sparse file all read back") { fs in
      let file = try fs.open("sparse", O_RDWR | O_CREAT)
      var random = SeededRandom(seed: 7)
      var pieces: [Int64: [UInt8]] = [:]
      for number in 0..<1000 {
        let offset = Int64.random(in: 0..<16_384, using: &random) * 65_536
        let piece = pattern(Int.random(in: 1...3000, using: &random), seed: UInt64(number))
        try file.pwriteAll(piece, at: offset)
        pieces[offset] = piece + (pieces[offset] ?? []).dropFirst(piece.count)
      }
      try file.close()
      let again = try fs.open("sparse", O_RDONLY)
      for (offset, piece) in pieces {
        try expect(again.pread(piece.count, at: offset) == piece, "the bytes at \(offset) differ")
        try expect(again.pread(100, at: offset + 40_000).allSatisfy { $0 == 0 }, "no zeros after \(offset)")
      }
      try again.close()
    },
  ]

  static let allocation: [Case] = [
    Case("fallocate grows the file with zeros and leaves what is there") { fs in
      try fs.put("file", "text")
      let file = try fs.open("file", O_RDWR)
      try file.allocate(0, 0, 100_000)
      try expect(file.status().size, is: 100_000, "size")
      try expect(file.pread(200_000, at: 0) == Array("text".utf8) + zeros(99_996), "contents differ")
      try file.allocate(0, 10, 5)
      try expect(file.status().size, is: 100_000, "size after a second call inside")
      try file.close()
      try expect(fs.lstat("file").size, is: 100_000, "size after closing")
    },
    Case("fallocate with KEEP_SIZE keeps the size") { fs in
      try fs.put("file", "text")
      let file = try fs.open("file", O_RDWR)
      try file.allocate(keepSize, 0, mebi)
      try expect(file.status().size, is: 4, "size")
      try file.pwriteAll(Array("!".utf8), at: 4)
      try expect(file.pread(99, at: 0), is: Array("text!".utf8), "contents")
      try file.close()
    },
    Case("punching a hole zeroes exactly its bytes and keeps the size") { fs in
      let bytes = pattern(500_000)
      for (offset, count) in [(0, 4096), (1, 1), (4096, 131_072), (5, 300_000), (65_535, 2), (499_000, 5000)] {
        try fs.put("file", bytes)
        let file = try fs.open("file", O_RDWR)
        try file.allocate(punchHole, Int64(offset), Int64(count))
        var expected = bytes
        for index in offset..<min(offset + count, bytes.count) { expected[index] = 0 }
        try expect(file.pread(600_000, at: 0) == expected, "contents differ after a hole at \(offset) of \(count)")
        try file.close()
        try expect(fs.contents("file") == expected, "contents differ after closing")
      }
    },
    Case("a punched hole is a hole, past the end it changes nothing") { fs in
      try fs.put("file", pattern(Int(4 * mebi)))
      let file = try fs.open("file", O_RDWR)
      try file.allocate(punchHole, mebi, mebi)
      try expect(file.seek(0, seekHole), is: mebi, "hole")
      try expect(file.seek(mebi, seekData), is: 2 * mebi, "data after the hole")
      try file.allocate(punchHole, 10 * mebi, mebi)
      try expect(file.status().size, is: 4 * mebi, "size")
      try file.close()
    },
    Case("PUNCH_HOLE without KEEP_SIZE fails with EOPNOTSUPP", needs: .kernel) { fs in
      try fs.put("file", pattern(10_000))
      let file = try fs.open("file", O_RDWR)
      try expect(EOPNOTSUPP) { try file.allocate(2, 0, 4096) }
      try file.close()
    },
    Case("ZERO_RANGE zeroes, and grows the file unless KEEP_SIZE") { fs in
      let bytes = pattern(200_000)
      try fs.put("file", bytes)
      let file = try fs.open("file", O_RDWR)
      try file.allocate(zeroRange, 1000, 100_000)
      var expected = bytes
      for index in 1000..<101_000 { expected[index] = 0 }
      try expect(file.pread(300_000, at: 0) == expected, "contents differ")
      try file.allocate(zeroRange | keepSize, 150_000, 100_000)
      for index in 150_000..<200_000 { expected[index] = 0 }
      try expect(file.status().size, is: 200_000, "size with KEEP_SIZE")
      try expect(file.pread(300_000, at: 0) == expected, "contents differ with KEEP_SIZE")
      try file.allocate(zeroRange, 190_000, 60_000)
      try expect(file.status().size, is: 250_000, "size without KEEP_SIZE")
      try expect(file.pread(300_000, at: 0) == expected + zeros(50_000), "contents differ when grown")
      try file.close()
    },
    Case("fallocate of nothing or before the start fails with EINVAL", needs: .kernel) { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT)
      try expect(EINVAL) { try file.allocate(0, 0, 0) }
      try expect(EINVAL) { try file.allocate(0, -1, 10) }
      try expect(EINVAL) { try file.allocate(0, 0, -1) }
      try expect(EFBIG, EINVAL) { try file.allocate(0, .max - 10, 10) }
      try file.close()
    },
  ]

  static let copying: [Case] = [
    Case("copy_file_range copies all and parts, and tells how much") { fs in
      let bytes = pattern(3_000_000)
      try fs.put("source", bytes)
      let source = try fs.open("source", O_RDONLY)
      let target = try fs.open("target", O_RDWR | O_CREAT)
      try expect(copy(source, 0, target, 0, 3_000_000), is: 3_000_000, "bytes copied")
      try expect(target.pread(4_000_000, at: 0) == bytes, "the copy differs")
      try expect(copy(source, 100, target, 5_000_001, 70_000), is: 70_000, "bytes copied of a part")
      try expect(target.pread(80_000, at: 5_000_001) == Array(bytes[100..<70_100]), "the part differs")
      try expect(target.pread(10, at: 4_000_000) == zeros(10), "no zeros between")
      try source.close()
      try target.close()
      try expect(fs.lstat("target").size, is: 5_070_001, "size")
      try expect(fs.contents("source") == bytes, "the source differs")
    },
    Case("copy_file_range at and past the end copies what is there") { fs in
      try fs.put("source", "0123456789")
      let source = try fs.open("source", O_RDONLY)
      let target = try fs.open("target", O_RDWR | O_CREAT)
      try expect(source.copyRange(10, to: target, 0, 100), is: 0, "bytes copied at the end")
      try expect(source.copyRange(1000, to: target, 0, 100), is: 0, "bytes copied past the end")
      try expect(copy(source, 7, target, 0, 100), is: 3, "bytes copied across the end")
      try expect(target.pread(99, at: 0), is: Array("789".utf8), "contents")
      try source.close()
      try target.close()
    },
    Case("copy_file_range within a file refuses to overlap", needs: .kernel) { fs in
      try fs.put("file", pattern(100_000))
      let file = try fs.open("file", O_RDWR)
      try expect(EINVAL) { try file.copyRange(0, to: file, 10, 100) }
      try expect(copy(file, 0, file, 200_000, 50_000), is: 50_000, "bytes copied within the file")
      try expect(file.pread(50_000, at: 200_000) == Array(pattern(100_000)[..<50_000]), "the copy differs")
      try file.close()
    },
    Case("copy_file_range needs a reader and a writer that does not append", needs: .kernel) { fs in
      try fs.put("source", "text")
      try fs.put("target", "text")
      let reader = try fs.open("source", O_RDONLY)
      let writer = try fs.open("target", O_WRONLY)
      let appender = try fs.open("target", O_WRONLY | O_APPEND)
      try expect(EBADF) { try writer.copyRange(0, to: writer, 10, 1) }
      try expect(EBADF) { try reader.copyRange(0, to: reader, 10, 1) }
      try expect(EBADF) { try reader.copyRange(0, to: appender, 0, 1) }
      try reader.close()
      try writer.close()
      try appender.close()
    },
    Case("copies are independent of their source") { fs in
      try fs.put("source", pattern(1_000_000))
      let source = try fs.open("source", O_RDWR)
      let target = try fs.open("target", O_RDWR | O_CREAT)
      _ = try copy(source, 0, target, 0, 1_000_000)
      try source.pwriteAll([1, 2, 3], at: 500_000)
      try target.pwriteAll([4, 5, 6], at: 700_000)
      var (first, second) = (pattern(1_000_000), pattern(1_000_000))
      first.replaceSubrange(500_000..<500_003, with: [1, 2, 3])
      second.replaceSubrange(700_000..<700_003, with: [4, 5, 6])
      try source.close()
      try target.close()
      try expect(fs.contents("source") == first, "the source differs")
      try expect(fs.contents("target") == second, "the copy differs")
    },
  ]
}

/// Copies in as many calls as it takes; returns the number of bytes.
private func copy(
  _ source: any OpenFile, _ offset: Int64, _ target: any OpenFile, _ targetOffset: Int64, _ count: Int
) throws -> Int {
  var done = 0
  while done < count {
    let part = try source.copyRange(offset + Int64(done), to: target, targetOffset + Int64(done), count - done)
    guard part > 0 else { break }
    done += part
  }
  return done
}
