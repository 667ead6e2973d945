import Foundation
import Glibc
import MountKit
import Testing

/// `sheaf send-copy` from a process that answers what it likes, as one of a crafted library does.
@Suite(.serialized) struct CopyTests {
  /// Serves a library's socket, and answers from a script `answers.py` that defines `children(path)`.
  private static let server = """
    import http.server, json, os, socketserver, sys, urllib.parse, uuid
    library, script = sys.argv[1:]
    exec(open(script).read())
    time = "2001-02-03T04:05:06.000000000Z"
    places = {}
    def place(path):
        if not path.startswith("id:"): return path
        item, slash, below = path[3:].partition("/")
        return places[item] + slash + below
    def child(name, kind="document", mode=0o644, target=None, mtime=time):
        return {"name": name, "kind": kind, "mode": mode, "mtime": mtime, "target": target}
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def address_string(self): return "client"
        def log_message(self, *arguments): pass
        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(url.query)
            path = query.get("path", [""])[0]
            # As a process of a library does.
            if len(path.encode()) > 4096: return self.send_error(400)
            path = place(path)
            item = str(uuid.uuid5(uuid.NAMESPACE_URL, path))
            places[item] = path
            if url.path == "/v1": answer = {"api": 1, "library": library, "id": "x", "pid": os.getpid(), "mounts": False, "account": None}
            elif url.path == "/v1/mounts": answer = []
            elif url.path == "/v1/items/children": answer = children(path)
            elif url.path == "/v1/items": answer = {
                "id": item, "path": path, "kind": "folder", "version": None, "owner": "alice@example.com", "mode": 0o755,
                "mtime": time, "state": "saved", "conflict": None, "share": None, "people": [], "changes": [], "can": []}
            else: answer = "written"
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
    Server(library + "-socket", Handler).serve_forever()
    """

  /// Copies `Documents/team`, of which the process says that this is in it, to `target` in a folder of its own.
  private func withCopy(
    _ children: String, _ body: (_ output: Command.Output, _ folder: String, _ copy: String) throws -> Void
  ) throws {
    let folder = try TemporaryFolder()
    defer { _ = try? Command(["rm", "-rf", folder.path]).run() }
    let library = "\(folder.path)/library.sqlite"
    #expect(FileManager.default.createFile(atPath: library, contents: nil))
    let script = "\(folder.path)/answers.py"
    try "def children(path): \(children)\n".write(toFile: script, atomically: true, encoding: .utf8)
    let server = try BackgroundCommand(Command(["/usr/bin/python3", "-c", Self.server, library, script]))
    defer { server.end() }
    try eventually("the server", within: .seconds(30)) { FileManager.default.fileExists(atPath: library + "-socket") }
    let place = try folder.folder("place")
    let output = try SheafProgram.run(["send-copy", "Documents/team", "\(place)/copy", "--library", library])
    try body(output, place, "\(place)/copy")
  }

  private func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder)
  }

  @Test(arguments: [
    "../escaped", "../../escaped", "/var/tmp/escaped", "..", ".", "", "a/../../escaped", "sub/../../escaped", "a%00b",
    "a%2Fb", "%zz",
  ])
  func aNameIsOneComponentOrRefused(_ name: String) throws {
    for kind in ["document", "folder", "symlink"] {
      let target = kind == "symlink" ? "'/etc'" : "None"
      try withCopy(
        "return [child('sub', 'folder'), child('\(name)', '\(kind)', target=\(target))] if path.endswith('team') else []"
      ) { output, folder, copy in
        #expect(output.status == 1 && output.errorText.contains("which is no name"), "\(output)")
        let (made, copied) = (try names(in: folder), try names(in: copy))
        #expect(made == ["copy"] && copied.allSatisfy { $0 == "sub" })
        #expect(access("\(folder)/../escaped", F_OK) != 0)
      }
    }
  }

  /// What is first a link and then a folder of the same name would lead what is in that elsewhere.
  @Test(arguments: ["document", "folder"]) func aLinkOfTheSameNameIsNotFollowed(_ kind: String) throws {
    try withCopy(
      "return [child('x', 'symlink', target='..'), child('x', '\(kind)')] if path.endswith('team') else [child('escaped')]"
    ) { output, folder, _ in
      #expect(output.status == 1 && output.errorText.contains("File exists"), "\(output)")
      let made = try names(in: folder)
      #expect(made == ["copy"])
    }
  }

  @Test func nothingIsMadeForAFolderThatCannotBeRead() throws {
    try withCopy("raise KeyError(path)") { output, folder, _ in
      let made = try names(in: folder)
      #expect(output.status == 1 && made.isEmpty, "\(output)")
    }
  }

  @Test func noSetIDBitComesFromALibrary() throws {
    try withCopy("return [child('run', mode=0o6755), child('sub', 'folder', 0o7777)] if path.endswith('team') else []")
    {
      output, _, copy in
      #expect(output.status == 0, "\(output)")
      let modes = try Command(["stat", "-c", "%a", "\(copy)/run", "\(copy)/sub"]).succeed().text
      #expect(modes == "755\n777")
    }
  }

  @Test func timesAtTheirExtremesAreCopiedOrRefused() throws {
    for time in [
      "1677-09-21T00:12:44.000000000Z", "2262-04-11T23:47:16.000000000Z", "0000-01-01T00:00:00Z", "nonsense",
    ] {
      try withCopy("return [child('a', mtime='\(time)')]") { output, _, _ in
        #expect([0, 1].contains(output.status), "\(output)")
      }
    }
  }

  @Test func anAnswerThatCannotBeReadIsCalledThat() throws {
    try withCopy("return [child(7)]") { output, _, _ in
      #expect(output.status == 1 && output.errorText.contains("answers what this program cannot read"), "\(output)")
    }
  }

  /// Deeper than a path can be, and than a process may have files open.
  @Test func foldersAreCopiedHoweverDeepTheyLie() throws {
    try withCopy("return [child('d', 'folder')] if path.count('/') < 2500 else [child('end')]") { output, _, copy in
      #expect(output.status == 0, "\(output)")
      let count = try Command.shell("find . | wc -l", in: copy).succeed()
      #expect(count.text == "2501")
    }
  }
}
