import SheafHubCommand

// A target of its own: tests cannot look inside a program that is linked as this one is (Package.swift).
@main
enum Main {
  static func main() async { await Program.run() }
}
