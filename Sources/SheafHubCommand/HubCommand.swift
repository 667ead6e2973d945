import SheafHub
