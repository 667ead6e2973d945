import Fuse
import Glibc

extension MemoryFileSystem {
  func getattr(_ node: NodeID, handle: FileHandle?, caller: RequestContext, reply: consuming AttributesReply) {
    reply.answer(timeout: Entry.forever) { () throws(Errno) in
      try perform("getattr") { (state) throws(Errno) in try state.node(node).attributes }
    }
  }

  func setattr(_ node: NodeID, _ changes: SetAttributes, caller: RequestContext, reply: consuming AttributesReply) {
    if changes.handle != nil { count("setattr with a handle") }
    if changes.modificationTime == .now { count("setattr to now") }
    reply.answer(timeout: Entry.forever) { () throws(Errno) in
      try perform("setattr") { (state) throws(Errno) in
        var attributes = try state.node(node).attributes
        let now = currentTime()
        func time(_ time: SetAttributes.Time) -> TimeSpec {
          switch time {
          case .now: now
          case .at(let time): time
          }
        }
        if let mode = changes.mode { attributes.mode = attributes.mode & S_IFMT | mode & ~S_IFMT }
        if let uid = changes.uid { attributes.uid = uid }
        if let gid = changes.gid { attributes.gid = gid }
        if let value = changes.accessTime { attributes.accessTime = time(value) }
        if let value = changes.modificationTime { attributes.modificationTime = time(value) }
        attributes.changeTime = now
        state.nodes[node]?.attributes = attributes
        if let size = changes.size { state.truncate(node, to: size) }
        return try state.node(node).attributes
      }
    }
  }

  func statfs(_ node: NodeID, caller: RequestContext, reply: consuming StatFSReply) {
    count("statfs")
    reply.succeed(
      StatFS(blocks: 1 << 34, freeBlocks: 1 << 33, availableBlocks: 12_345, files: 1000, freeFiles: 999))
  }

  func setxattr(
    _ node: NodeID, name: FileName, value: UnsafeRawBufferPointer, flags: XattrFlags, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    let value = [UInt8](value)
    reply.answer { () throws(Errno) in
      try perform("setxattr") { (state) throws(Errno) in
        let exists = try state.node(node).attributesExtended[name] != nil
        if flags.contains(.create), exists { throw .fileExists }
        if flags.contains(.replace), !exists { throw .attributeNotFound }
        state.nodes[node]?.attributesExtended[name] = value
      }
    }
  }

  func getxattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming XattrReply) {
    reply.answer { () throws(Errno) in
      try perform("getxattr") { (state) throws(Errno) in
        guard let value = try state.node(node).attributesExtended[name] else { throw .attributeNotFound }
        return value
      }
    }
  }

  func listxattr(_ node: NodeID, caller: RequestContext, reply: consuming XattrListReply) {
    reply.answer { () throws(Errno) in
      try perform("listxattr") { (state) throws(Errno) in
        try state.node(node).attributesExtended.keys.sorted { $0.description < $1.description }
      }
    }
  }

  func removexattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      try perform("removexattr") { (state) throws(Errno) in
        guard try state.node(node).attributesExtended[name] != nil else { throw .attributeNotFound }
        state.nodes[node]?.attributesExtended[name] = nil
      }
    }
  }
}
