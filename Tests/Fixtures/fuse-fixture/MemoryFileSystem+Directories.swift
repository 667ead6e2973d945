import Fuse
import Glibc

extension MemoryFileSystem {
  func opendir(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    reply.answer { () throws(Errno) in
      try perform("opendir") { (state) throws(Errno) in OpenResult(handle: state.newHandle()) }
    }
  }

  func readdir(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryReply
  ) {
    reply.answer { (buffer) throws(Errno) in
      for child in try children(of: node, after: cookie, "readdir") {
        guard buffer.add(child.name, node: child.node, mode: child.mode, next: child.cookie) else { return }
      }
    }
  }

  func readdirplus(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryPlusReply
  ) {
    reply.answer { (buffer) throws(Errno) in
      for child in try children(of: node, after: cookie, "readdirplus") {
        let entry = try state.withLock { (state) throws(Errno) in try state.entry(child.node) }
        guard buffer.add(child.name, entry, next: child.cookie) else {
          state.withLock { $0.nodes[child.node]?.lookups -= 1 }
          return
        }
      }
    }
  }

  func releasedir(_ node: NodeID, handle: FileHandle, caller: RequestContext, reply: consuming EmptyReply) {
    count("releasedir")
    _ = state.withLock { $0.openHandles.remove(handle) }
    reply.succeed()
  }

  func fsyncdir(_ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply)
  {
    count("fsyncdir")
    reply.succeed()
  }

  private struct Child: Sendable {
    let name: FileName
    let node: NodeID
    let mode: UInt32
    let cookie: UInt64
  }

  private func children(
    of id: NodeID, after cookie: UInt64, _ operation: String
  ) throws(Errno) -> [Child] {
    try perform(operation) { (state) throws(Errno) in
      let all = try state.node(id).children
      // Cookies rise: the first one after the given is found by bisection.
      var low = 0
      var high = all.count
      while low < high {
        let middle = (low + high) / 2
        if all[middle].cookie > cookie { high = middle } else { low = middle + 1 }
      }
      // As many as a reply can hold, not all of a large directory for each part of it.
      return all[low...].prefix(min(entriesPerReply, 1024)).map { child in
        Child(
          name: child.name, node: child.node, mode: state.nodes[child.node]?.attributes.mode ?? 0,
          cookie: child.cookie)
      }
    }
  }
}
